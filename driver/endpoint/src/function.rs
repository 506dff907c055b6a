//! The PCI function that vfio-user serves: routes accesses to configuration space, MSI-X table and
//! device.

use std::fs::File;
use std::io::{Error, ErrorKind};

use nearpm_interface::config_space::{ConfigSpace, Effect};
use nearpm_interface::geometry::{MSIX_BAR, MSIX_BAR_BYTES, PM_BAR};
use vfio_bindings::bindings::vfio::{
    VFIO_IRQ_SET_ACTION_TRIGGER, VFIO_IRQ_SET_DATA_EVENTFD, VFIO_PCI_CONFIG_REGION_INDEX, VFIO_PCI_MSIX_IRQ_INDEX,
};
use vfio_user::{DmaMapFlags, DmaUnmapFlags, ServerBackend};

use crate::Device;
use crate::bus::VECTORS;

/// Most bytes of one access: as many as the served library offers a client. By then the library has
/// taken memory for as many as the client asked for, before it asked us; of a load it has touched
/// none.
const MOST_BYTES: usize = 1 << 20;

/// The function as one client sees it, for as long as it is connected.
pub struct Function<D> {
    device: D,
    config: ConfigSpace,
    msix: Vec<u8>,
}

fn config_of(device: &impl Device) -> ConfigSpace {
    ConfigSpace::with_vectors(device.bar_bytes(PM_BAR), VECTORS as u16)
}

/// What a region is made of.
enum RegionType {
    Config,
    Msix,
    Bar(usize),
}

fn region_type(region: u32) -> RegionType {
    match region {
        VFIO_PCI_CONFIG_REGION_INDEX => RegionType::Config,
        bar if bar as usize == MSIX_BAR => RegionType::Msix,
        bar => RegionType::Bar(bar as usize),
    }
}

impl<D: Device> Function<D> {
    /// For a client that comes now.
    pub fn new(device: D) -> Function<D> {
        Function { config: config_of(&device), msix: vec![0; MSIX_BAR_BYTES], device }
    }

    fn reset_function(&mut self) {
        if self.device.reset() {
            self.config = config_of(&self.device);
            self.msix.fill(0);
        }
    }

    fn write_config(&mut self, offset: u64, data: &[u8]) {
        if self.config.write(offset, data) == Effect::Reset {
            return self.reset_function();
        }
        let master = self.config.bus_master();
        self.device.with_bus(&mut |bus| bus.master = master);
    }

    /// The part of the MSI-X table that an access reaches.
    fn msix(&mut self, offset: u64, bytes: usize) -> Option<&mut [u8]> {
        let start = usize::try_from(offset).ok()?;
        self.msix.get_mut(start..start.checked_add(bytes)?)
    }
}

fn check_size(bytes: usize) -> Result<(), Error> {
    if bytes <= MOST_BYTES { Ok(()) } else { Err(ErrorKind::InvalidInput.into()) }
}

impl<D: Device> ServerBackend for Function<D> {
    fn region_read(&mut self, region: u32, offset: u64, data: &mut [u8]) -> Result<(), Error> {
        check_size(data.len())?;
        data.fill(0xff);
        match region_type(region) {
            RegionType::Bar(bar) if self.config.memory_enabled() => self.device.load(bar, offset, data),
            _ if !self.device.is_present() => {}
            RegionType::Config => self.config.read(offset, data),
            RegionType::Msix => {
                if let Some(table) = self.msix(offset, data.len()) {
                    data.copy_from_slice(table);
                }
            }
            RegionType::Bar(_) => {}
        }
        Ok(())
    }

    fn region_write(&mut self, region: u32, offset: u64, data: &[u8]) -> Result<(), Error> {
        check_size(data.len())?;
        match region_type(region) {
            RegionType::Bar(bar) if self.config.memory_enabled() => self.device.store(bar, offset, data),
            _ if !self.device.is_present() => {}
            RegionType::Config => self.write_config(offset, data),
            RegionType::Msix => {
                if let Some(table) = self.msix(offset, data.len()) {
                    table.copy_from_slice(data);
                }
            }
            RegionType::Bar(_) => {}
        }
        Ok(())
    }

    fn dma_map(&mut self, _: DmaMapFlags, offset: u64, address: u64, size: u64, fd: Option<File>) -> Result<(), Error> {
        // Memory without a descriptor could only be reached by messages, which the served library
        // does not have.
        let Some(file) = fd else { return Ok(()) };
        let (mut file, mut mapped) = (Some(file), Ok(()));
        self.device.with_bus(&mut |bus| {
            if let Some(file) = file.take() {
                mapped = bus.map(address, size, file, offset);
            }
        });
        mapped
    }

    fn dma_unmap(&mut self, flags: DmaUnmapFlags, address: u64, size: u64) -> Result<(), Error> {
        self.device.with_bus(&mut |bus| match flags.contains(DmaUnmapFlags::UNMAP_ALL) {
            true => bus.revoke(),
            false => bus.unmap(address, size),
        });
        Ok(())
    }

    fn reset(&mut self) -> Result<(), Error> {
        self.reset_function();
        Ok(())
    }

    fn set_irqs(&mut self, index: u32, flags: u32, start: u32, count: u32, fds: Vec<File>) -> Result<(), Error> {
        if index != VFIO_PCI_MSIX_IRQ_INDEX || flags & VFIO_IRQ_SET_ACTION_TRIGGER == 0 {
            return Ok(());
        }
        if flags & VFIO_IRQ_SET_DATA_EVENTFD == 0 {
            // Without data and with a count of zero: all of them off.
            let off = if count == 0 { VECTORS } else { 0 };
            self.device.with_bus(&mut |bus| (0..off).for_each(|vector| bus.set_vector(vector, None)));
            return Ok(());
        }
        if start as usize + fds.len() > VECTORS {
            return Err(ErrorKind::InvalidInput.into());
        }
        let mut events = (start as usize..).zip(fds);
        self.device
            .with_bus(&mut |bus| events.by_ref().for_each(|(vector, event)| bus.set_vector(vector, Some(event))));
        Ok(())
    }
}
