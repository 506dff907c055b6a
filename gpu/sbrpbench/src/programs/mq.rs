//! MQ: queues, one a block; commands insert or remove a batch of entries whole.

use anyhow::{Result, ensure};
use nearpm_ptx::Arguments;

use super::{Program, Size, mix};
use crate::device::{Device, Shape};

/// `SBRP_QUEUE_WORDS` and the words of a queue's head.
const WORDS: usize = 96;
const TAIL: usize = 1;
const LOG_HEAD: usize = 32;
const ACTIVE: usize = 64;

/// Commands of each queue in a batch before: an insertion and a removal, whose log is still there.
const EARLIER: usize = 2;

pub(super) struct Mq {
    queues: usize,
    threads: usize,
    capacity: usize,
    commands: usize,
    /// Entries of a command.
    size: usize,
}

impl Mq {
    pub fn new(size: Size) -> Self {
        // The artifact: 120 queues of 32 768 entries, 2000 commands of 4096 entries.
        let (queues, threads, capacity, commands, entries) =
            size.of((2, 64, 1024, 6, 256), (30, 128, 8192, 240, 1024), (120, 128, 32_768, 2000, 4096));
        Self { queues, threads, capacity, commands, size: entries }
    }

    fn value(queue: usize, place: usize) -> u32 {
        mix((queue as u32).wrapping_mul(0x10001).wrapping_add(place as u32))
    }

    /// Commands of a queue.
    fn of_queue(&self, queue: usize) -> usize {
        (queue..self.commands).step_by(self.queues).count()
    }

    fn check(&self, image: &[u32], done: bool) -> Result<()> {
        for queue in 0..self.queues {
            let words = &image[self.queues * self.capacity + queue * WORDS..][..WORDS];
            let (head, tail) = (words[0] as usize, words[TAIL] as usize);
            ensure!(words[ACTIVE] == 0, "queue {queue}: command {} is under way", words[ACTIVE]);
            ensure!(
                head.is_multiple_of(self.size) && tail.is_multiple_of(self.size),
                "queue {queue}: part of a command"
            );
            ensure!(head <= tail && tail - head <= self.size, "queue {queue}: head {head}, tail {tail}");
            ensure!(head >= self.size, "queue {queue}: a command of the batch before was taken back");
            let executed = (head + tail) / self.size - EARLIER;
            let all = self.of_queue(queue);
            ensure!(executed <= all, "queue {queue}: {executed} commands of {all}");
            ensure!(!done || executed == all, "queue {queue}: {executed} commands of {all}");
            for place in head..tail {
                let found = image[queue * self.capacity + place % self.capacity];
                ensure!(found == Self::value(queue, place), "queue {queue}: entry {place} is {found:#x}");
            }
        }
        Ok(())
    }
}

impl Program for Mq {
    fn name(&self) -> &'static str {
        "MQ"
    }

    fn image(&self) -> Vec<u32> {
        let mut image = vec![0; self.queues * (self.capacity + WORDS)];
        for words in image[self.queues * self.capacity..].chunks_exact_mut(WORDS) {
            words[..=TAIL].fill(self.size as u32);
            words[LOG_HEAD + 1] = self.size as u32;
        }
        image
    }

    fn run(&self, device: &mut dyn Device) -> Result<()> {
        let flags = device.words(&vec![0; self.queues * self.threads])?;
        let removed = device.words(&vec![0; self.queues])?;
        let pm = device.pm();
        let arguments = Arguments::new()
            .pointer(pm)
            .u32(self.capacity as u32)
            .pointer(pm + (self.queues * self.capacity) as u64 * 4)
            .u32(self.commands as u32)
            .u32(self.size as u32)
            .pointer(flags)
            .pointer(removed);
        device
            .launch(Shape { kernel: "sbrp_mq", blocks: self.queues as u32, threads: self.threads as u32 }, arguments)?;
        for (queue, &found) in device.read(removed, self.queues)?.iter().enumerate() {
            let entries = self.of_queue(queue) / 2 * self.size;
            let expected =
                (self.size..self.size + entries).fold(0u32, |sum, place| sum.wrapping_add(Self::value(queue, place)));
            ensure!(found == expected, "queue {queue}: other entries were removed than inserted");
        }
        Ok(())
    }

    fn recover(&self, device: &mut dyn Device) -> Result<()> {
        let queues = device.pm() + (self.queues * self.capacity) as u64 * 4;
        let arguments = Arguments::new().pointer(queues).u32(self.queues as u32);
        let (blocks, threads) = (self.queues.div_ceil(32) as u32, 32);
        device.launch(Shape { kernel: "sbrp_mq_recover", blocks, threads }, arguments)
    }

    fn check_done(&self, image: &[u32]) -> Result<()> {
        self.check(image, true)
    }

    fn check_recovered(&self, image: &[u32]) -> Result<()> {
        self.check(image, false)
    }

    fn crash_late(&self, image: &mut [u32]) {
        // Each queue's last command had not committed.
        for queue in 0..self.queues {
            let words = &mut image[self.queues * self.capacity + queue * WORDS..][..WORDS];
            let last = self.of_queue(queue) - 1;
            let before = [(1 + last / 2) * self.size, (1 + last.div_ceil(2)) * self.size];
            words[LOG_HEAD..LOG_HEAD + 2].copy_from_slice(&before.map(|word| word as u32));
            words[ACTIVE] = 1;
        }
    }
}
