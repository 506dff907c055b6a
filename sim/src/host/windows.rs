//! The PM windows of all cards, one behind the other, as the cache numbers their lines.

use nearpm_interface::geometry::LINE_U64;

/// Where each window starts.
pub struct Windows {
    /// First byte of each card's window, and the end of the last one.
    starts: Vec<u64>,
}

impl Windows {
    /// Windows of these sizes, in bytes.
    pub fn new(bytes: Vec<u64>) -> Self {
        let mut starts = vec![0];
        for size in bytes {
            assert_eq!(size % LINE_U64, 0, "a window is whole lines");
            starts.push(starts[starts.len() - 1] + size);
        }
        Windows { starts }
    }

    /// Number of cards.
    pub fn cards(&self) -> usize {
        self.starts.len() - 1
    }

    /// Bytes of a card's window.
    pub fn bytes(&self, card: usize) -> u64 {
        self.starts[card + 1] - self.starts[card]
    }

    /// Lines of all windows.
    pub fn lines(&self) -> usize {
        (self.starts[self.cards()] / LINE_U64) as usize
    }

    /// Offset of a card's address in all windows.
    #[inline]
    pub fn place(&self, card: usize, address: u64) -> u64 {
        self.starts[card] + address
    }

    /// Number of the line of a card's address.
    #[inline]
    pub fn number(&self, card: usize, address: u64) -> u64 {
        self.place(card, address) / LINE_U64
    }

    /// Card and address of a line.
    #[inline]
    pub fn locate(&self, number: u64) -> (usize, u64) {
        let place = number * LINE_U64;
        let card = self.starts.partition_point(|start| *start <= place) - 1;
        (card, place - self.starts[card])
    }

    /// Whether both lines exist and are of one card.
    pub fn are_together(&self, a: u64, b: u64) -> bool {
        b < self.lines() as u64 && self.locate(a).0 == self.locate(b).0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_counted_over_all_windows() {
        let windows = Windows::new(vec![4096, 8192]);
        assert_eq!((windows.cards(), windows.bytes(1), windows.lines()), (2, 8192, 192));
        assert_eq!(windows.number(1, 128), 66);
        assert_eq!((windows.locate(63), windows.locate(66)), ((0, 4032), (1, 128)));
        assert!(windows.are_together(64, 191) && !windows.are_together(63, 64) && !windows.are_together(191, 192));
    }
}
