//! `nearpm card bind` and `unbind`: which driver of the kernel a card of this machine has.

use anyhow::Result;
use nearpm_driver::vfio::{self, Change};

/// The address, which `nearpm card list` prints behind the name of its transport.
fn bare(address: &str) -> &str {
    address.strip_prefix("vfio:").unwrap_or(address)
}

/// What was done, for people.
fn told(change: &Change) -> String {
    let of = |driver: &Option<String>| driver.clone().unwrap_or_else(|| "no driver".into());
    let (before, now) = (of(&change.before), of(&change.now));
    match change.is_new() {
        true => format!("PCI device {}: {now}, instead of {before}\n", change.address),
        false => format!("PCI device {}: {now}, as before\n", change.address),
    }
}

/// Gives a card to vfio-pci.
///
/// # Errors
/// What is missing, and what to do.
pub fn bind(address: &str) -> Result<String> {
    Ok(told(&vfio::bind(bare(address))?))
}

/// Takes a card from vfio-pci.
///
/// # Errors
/// What is missing, and what to do.
pub fn unbind(address: &str) -> Result<String> {
    Ok(told(&vfio::unbind(bare(address))?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_taken_as_lspci_and_as_list_print_it() {
        for address in ["ffff:ff:1f.7", "vfio:ffff:ff:1f.7"] {
            for verb in [bind, unbind] {
                let error = verb(address).unwrap_err().to_string();
                assert!(error.contains("there is no PCI device ffff:ff:1f.7"), "{error}");
            }
        }
    }

    #[test]
    fn a_change_is_told_with_both_drivers() {
        let (address, driver) = ("0000:01:00.0".to_owned(), Some("vfio-pci".to_owned()));
        let change = Change { address, before: None, now: driver.clone() };
        assert_eq!(told(&change), "PCI device 0000:01:00.0: vfio-pci, instead of no driver\n");
        assert!(told(&Change { before: driver, ..change }).contains("as before"));
    }
}
