//! Looking into jobs, and taking them back.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;

use super::backend::Backend;
use crate::array::{Array, version_inc_all};
use crate::error::{Error, Result};
use crate::persist::{Current, Folder, Job, Restored, Storage, describe, scrub_folder};
use crate::rma::Kind;

#[derive(Args)]
pub struct FolderArguments {
    /// Folder of the job
    folder: PathBuf,
}

#[derive(Args)]
pub struct RestoreArguments {
    /// Folder of the job
    folder: PathBuf,
    /// Name of the array, or several; each version is closed anew in one cut
    #[arg(long, required = true)]
    array: Vec<String>,
    /// Number of the version
    #[arg(long)]
    version: u64,
    /// MiB of shared memory of each rank
    #[arg(long, default_value_t = 1024, value_parser = clap::value_parser!(u64).range(1..=1 << 24))]
    window_mib: u64,
}

pub fn check(arguments: &FolderArguments) -> Result<ExitCode> {
    let (current, report, arrays) = describe(&Folder::new(&arguments.folder))?;
    let versions: usize = arrays.iter().map(|array| array.versions.len()).sum();
    println!(
        "{} ranks, cut {}, {} arrays, {versions} versions: every block fits its checksums",
        current.ranks,
        report.cut,
        arrays.len()
    );
    if report.from_partners > 0 {
        println!(
            "{} of the pools are missing or cannot be opened; their partners' copies were read",
            report.from_partners
        );
    }
    if report.taken_back > 0 {
        println!("{} cuts were sealed on some ranks only: the next opening takes them back", report.taken_back);
    }
    Ok(ExitCode::SUCCESS)
}

pub fn scrub(arguments: &FolderArguments) -> Result<ExitCode> {
    let scrubbed = scrub_folder(&Folder::new(&arguments.folder))?;
    println!("{} blocks were read; {} were damaged and are mended", scrubbed.in_pool, scrubbed.mended_in_pool);
    Ok(ExitCode::SUCCESS)
}

pub fn versions(arguments: &FolderArguments) -> Result<ExitCode> {
    let (Current { generation, ranks, partners }, report, arrays) = describe(&Folder::new(&arguments.folder))?;
    let copies = if partners { ", each with a partner's copy" } else { "" };
    println!("{ranks} ranks{copies}, generation {generation}, cut {}", report.cut);
    for Restored { name, kind, dims, versions, whole, kept } in arrays {
        println!("{name}: {kind:?} {dims:?}; blocks that changed take {kept} of {whole} bytes");
        for (number, label) in versions {
            println!("  version {number} {label:?}");
        }
    }
    Ok(ExitCode::SUCCESS)
}

pub fn restore(arguments: &RestoreArguments) -> Result<ExitCode> {
    let folder = Folder::new(&arguments.folder);
    let Some(world) = Backend::Shm.launched(0)? else {
        let current = folder.current()?.ok_or_else(|| Error::Job {
            folder: folder.name(),
            what: "there is no job: give the folder of one".to_owned(),
        })?;
        return Backend::Shm.launch_and_wait(current.ranks, arguments.window_mib << 20);
    };
    let job = Job::open(&world, &folder)?;
    let known = job.arrays();
    let mut restored = Vec::new();
    for name in &arguments.array {
        let Some(array) = known.iter().find(|array| array.name == *name) else {
            let names: Vec<&str> = known.iter().map(|array| array.name.as_str()).collect();
            return Err(Error::option(format!("the job has no array {name:?}; it has {names:?}")));
        };
        restored.push(restore_array(&job, array, arguments.version)?);
    }
    let faces: Vec<_> = restored.iter().map(Any::face).collect();
    let number = version_inc_all(&faces, &format!("version {} again", arguments.version))?;
    if world.rank() == 0 {
        println!("version {} is the newest again, as version {number}", arguments.version);
    }
    drop(faces);
    drop(restored);
    job.close()?;
    Ok(ExitCode::SUCCESS)
}

/// An array of any kind of elements.
enum Any {
    U8(Array<u8>),
    I32(Array<i32>),
    U32(Array<u32>),
    I64(Array<i64>),
    U64(Array<u64>),
    F32(Array<f32>),
    F64(Array<f64>),
}

impl Any {
    fn face(&self) -> crate::array::Face<'_> {
        match self {
            Any::U8(array) => array.face(),
            Any::I32(array) => array.face(),
            Any::U32(array) => array.face(),
            Any::I64(array) => array.face(),
            Any::U64(array) => array.face(),
            Any::F32(array) => array.face(),
            Any::F64(array) => array.face(),
        }
    }
}

fn restore_array(job: &Job, known: &Restored, version: u64) -> Result<Any> {
    macro_rules! open {
        ($kind:ident) => {{
            let array = job.array(&known.name, &known.dims, crate::Options::default())?;
            array.restore(version)?;
            Any::$kind(array)
        }};
    }
    Ok(match known.kind {
        Kind::U8 => open!(U8),
        Kind::I32 => open!(I32),
        Kind::U32 => open!(U32),
        Kind::I64 => open!(I64),
        Kind::U64 => open!(U64),
        Kind::F32 => open!(F32),
        Kind::F64 => open!(F64),
    })
}
