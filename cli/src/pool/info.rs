//! `nearpm pool info`.

use std::process::ExitCode;

use anyhow::Result;
use nearpm::check::{Contents, Image, Info, RegionInfo, TypeInfo};

use super::{Target, line, print_json};
use nearpm_text::{Table, grouped, size};

/// Runs the command.
pub fn command(target: &Target) -> Result<ExitCode> {
    let mut image = Image::open(&target.location)?;
    if let Some(region) = image.region()? {
        if target.json {
            print_json(&region)?;
        } else {
            print_region(&region);
        }
        return Ok(ExitCode::SUCCESS);
    }
    let info = image.info()?;
    if target.json {
        print_json(&info)?;
    } else {
        print(&info);
    }
    Ok(ExitCode::SUCCESS)
}

fn print(info: &Info) {
    line("format", info.version);
    line("identifier", format_args!("{:#010x}", info.id));
    line("size", format_args!("{} ({} bytes)", size(info.bytes), grouped(info.bytes)));
    if info.file_bytes != info.bytes {
        line("file", format_args!("{} bytes, more than the pool", grouped(info.file_bytes)));
    }
    line("log rings", format_args!("{} of {}, {} used", info.lanes, size(info.ring_bytes.into()), info.log.rings_used));
    line("closed", if info.closed { "in order, or never open for direct use" } else { "no: open it, or recover it" });
    if let Some(mode) = info.mode_of_last_use {
        line("mode of last use", format_args!("{mode}, for who lets a program's last use choose (NEARPM_MODE unset)"));
    }
    let log = info.log;
    line("log segments", format_args!("{} ({}), {} records wait", log.segments, size(log.segment_bytes), log.records));
    match info.recovery {
        Some(found) => line(
            "recovery",
            format_args!("would undo {}, redo {}, write {}", found.undone, found.redone, size(found.bytes)),
        ),
        None => line("recovery", "damage is in its way: see nearpm pool check"),
    }
    if let (Some(root), Some(used), Some(free)) = (info.root, info.used_bytes, info.free_bytes) {
        line("root", if root == 0 { "none".to_owned() } else { format!("{root:#x}") });
        info.contents.iter().for_each(contents);
        line("heap", format_args!("{} used, {} free", size(used), size(free)));
    }
    let mut table = Table::new(&["part", "offset", "bytes"]);
    for region in &info.regions {
        table.row([region.name.to_owned(), format!("{:#x}", region.offset), grouped(region.bytes)]);
    }
    print!("\n{table}");
    if let Some(Contents::Pmdk { types, .. }) = &info.contents
        && !types.is_empty()
    {
        let mut table = Table::new(&["type number", "objects", "bytes"]);
        for &TypeInfo { number, objects, bytes } in types {
            table.row([number.to_string(), grouped(objects), grouped(bytes)]);
        }
        print!("\n{table}");
    }
}

/// A region of a GPU.
fn print_region(region: &RegionInfo) {
    line("format", format_args!("{}, of a GPU's region", region.version));
    line("identifier", format_args!("{:#010x}", region.id));
    line("size", format_args!("{} ({} bytes)", size(region.bytes), grouped(region.bytes)));
    let mut table = Table::new(&["object", "kind", "offset", "bytes", "state"]);
    for object in &region.objects {
        let (offset, bytes) = (format!("{:#x}", object.offset), grouped(object.bytes));
        table.row([object.name.clone(), object.kind.to_owned(), offset, bytes, object.state.clone()]);
    }
    print!("\n{table}");
}

/// Whose data it is.
fn contents(contents: &Contents) {
    let bytes = |bytes: &u64| format!("{} bytes", grouped(*bytes));
    match contents {
        Contents::Pmdk { layout, root, root_bytes, .. } => {
            line("layout", format_args!("{layout:?}, of a PMDK program"));
            match root {
                0 => line("its root", "none"),
                root => line("its root", format_args!("{root:#x}, {}", bytes(root_bytes))),
            }
        }
        Contents::Rust { root_type, root_bytes } => {
            line("root type", format_args!("{root_type:?} of {}, of a Rust program", bytes(root_bytes)));
        }
        Contents::Untyped { root_bytes } => line("root object", format_args!("{}, of no type", bytes(root_bytes))),
        _ => {}
    }
}
