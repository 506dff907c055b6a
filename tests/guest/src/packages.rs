//! Kernel and QEMU: Debian's packages, downloaded by apt into a folder of the project's, unpacked
//! there and not installed.
//!
//! apt checks Debian's signature and each package's checksum. It works on lists and a state of its
//! own, so that no root is needed and nothing on the machine changes. QEMU has vfio-user since
//! 10.1, which the release of Debian is too old for: QEMU and what it needs come from its
//! backports, the kernel from the release itself.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

/// The release of Debian.
const RELEASE: &str = "trixie";
/// QEMU for this processor.
const QEMU: &str = "qemu-system-x86";
/// The kernel for virtual machines.
const KERNEL: &str = "linux-image-cloud-amd64";
/// Keys that Debian signs with.
const KEYRING: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";
/// Seconds that one run of apt may take.
const APT_SECONDS: &str = "600";
/// Stands in the folder when everything was unpacked; holds the versions.
const COMPLETE: &str = "versions";
/// Folder of the libraries.
const LIBRARIES: &str = "usr/lib/x86_64-linux-gnu";

/// Unpacked packages.
#[derive(Clone, Debug)]
pub struct Packages {
    root: PathBuf,
    /// What they are, for people.
    pub versions: String,
}

/// Where packages are kept: `NEARPM_GUEST_CACHE`, or a folder of the workspace's.
pub fn cache() -> PathBuf {
    match std::env::var_os("NEARPM_GUEST_CACHE") {
        Some(folder) => folder.into(),
        None => Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.tools/guest"),
    }
}

impl Packages {
    /// Those of a folder, downloaded where they are missing.
    ///
    /// # Errors
    /// If they cannot be downloaded or unpacked, or if this QEMU knows no vfio-user.
    pub fn get(cache: &Path) -> Result<Packages> {
        let root = cache.join("root");
        fs::create_dir_all(cache).with_context(|| format!("cannot make {}", cache.display()))?;
        // One process downloads, and others wait for it.
        let lock = fs::File::create(cache.join("lock"))?;
        lock.lock().with_context(|| format!("cannot lock {}", cache.display()))?;
        if !root.join(COMPLETE).exists() {
            fetch(cache, &root).context("cannot get the guest's kernel and QEMU")?;
        }
        let versions = fs::read_to_string(root.join(COMPLETE)).context("the versions cannot be read")?;
        Ok(Packages { root, versions })
    }

    /// The kernel's image.
    ///
    /// # Errors
    /// If there is not exactly one.
    pub fn kernel(&self) -> Result<PathBuf> {
        only(&self.root.join("boot"), |name| name.starts_with("vmlinuz-"))
    }

    /// The folder of the kernel's modules.
    ///
    /// # Errors
    /// If there is not exactly one.
    pub fn modules(&self) -> Result<PathBuf> {
        Ok(only(&self.root.join("usr/lib/modules"), |_| true)?.join("kernel"))
    }

    /// Program and first arguments of QEMU, which runs on its own libraries.
    pub fn qemu(&self) -> Vec<OsString> {
        let of = |path: &str| self.root.join(path).into_os_string();
        vec![
            of("usr/lib64/ld-linux-x86-64.so.2"),
            "--library-path".into(),
            of(LIBRARIES),
            of("usr/bin/qemu-system-x86_64"),
            "-L".into(),
            of("usr/share/qemu"),
            "-L".into(),
            of("usr/share/seabios"),
        ]
    }

    /// Folder of QEMU's modules.
    pub fn qemu_modules(&self) -> PathBuf {
        self.root.join(LIBRARIES).join("qemu")
    }
}

/// The only entry of a folder that is meant.
fn only(folder: &Path, meant: impl Fn(&str) -> bool) -> Result<PathBuf> {
    let entries = fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?;
    let mut found = entries.flatten().filter(|entry| meant(&entry.file_name().to_string_lossy()));
    match (found.next(), found.next()) {
        (Some(entry), None) => Ok(entry.path()),
        _ => bail!("there is not exactly one in {}", folder.display()),
    }
}

/// Runs a program to its end; what it printed.
fn run(command: &mut Command) -> Result<String> {
    let output = command.output().with_context(|| format!("cannot run {:?}", command.get_program()))?;
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    ensure!(output.status.success(), "{command:?}: {}: {out}{err}", output.status);
    Ok(out.into_owned())
}

/// The mirror that this machine uses for Debian's own packages.
fn mirror() -> Result<String> {
    let mut command = Command::new("apt-get");
    command.args(["indextargets", "--format", "$(SITE) $(REPO_URI)", "Created-By: Packages", "Label: Debian"]);
    let targets = run(&mut command)?;
    let uri = targets.lines().find_map(|line| line.split_once(' ')).map(|(_, uri)| uri.to_owned());
    uri.context("apt knows no mirror of Debian on this machine: is it a Debian, and has `apt-get update` run on it?")
}

/// apt on lists, packages and a state of its own.
fn apt(folder: &Path) -> Command {
    let mut command = Command::new("timeout");
    command.args([APT_SECONDS, "apt-get", "--quiet", "--yes", "--no-install-recommends"]);
    let at = |name: &str| folder.join(name).display().to_string();
    for (name, value) in [
        ("Dir::State", folder.display().to_string()),
        ("Dir::State::status", at("status")),
        ("Dir::Cache", folder.display().to_string()),
        ("Dir::Etc::sourcelist", at("sources.list")),
        ("Dir::Etc::sourceparts", "/dev/null".into()),
        ("Dir::Etc::preferences", "/dev/null".into()),
        ("Dir::Etc::preferencesparts", "/dev/null".into()),
        ("APT::Architecture", "amd64".into()),
        ("APT::Sandbox::User", String::new()),
        ("Acquire::Languages", "none".into()),
        ("Acquire::IndexTargets::deb::DEP-11::DefaultEnabled", "false".into()),
        ("Acquire::Retries", "3".into()),
    ] {
        command.arg("-o").arg(format!("{name}={value}"));
    }
    command
}

fn fetch(cache: &Path, root: &Path) -> Result<()> {
    let folder = std::path::absolute(cache.join("apt"))?;
    // What an interrupted run left may be of other versions, and everything that lies here is
    // unpacked.
    let archives = folder.join("archives");
    if archives.exists() {
        fs::remove_dir_all(&archives)?;
    }
    for part in ["lists/partial", "archives/partial"] {
        fs::create_dir_all(folder.join(part))?;
    }
    // Nothing counts as installed, so that everything that is needed is downloaded.
    fs::write(folder.join("status"), "")?;
    let mirror = mirror()?;
    let line = |suite: &str| format!("deb [signed-by={KEYRING}] {mirror} {suite} main\n");
    fs::write(folder.join("sources.list"), line(RELEASE) + &line(&format!("{RELEASE}-backports")))?;
    run(apt(&folder).arg("update"))?;
    let kernel = format!("{KERNEL}/{RELEASE}");
    run(apt(&folder).args(["install", "--download-only", "-t", &format!("{RELEASE}-backports"), QEMU, &kernel]))?;
    unpack(&archives, root)
}

fn unpack(archives: &Path, root: &Path) -> Result<()> {
    // Beside the final folder until it is whole, so that an interruption leaves nothing that is
    // taken for it.
    let beside = root.with_extension("new");
    if beside.exists() {
        fs::remove_dir_all(&beside)?;
    }
    fs::create_dir_all(&beside)?;
    let mut versions = String::new();
    for entry in fs::read_dir(archives)? {
        let path = entry?.path();
        if path.extension().is_none_or(|extension| extension != "deb") {
            continue;
        }
        run(Command::new("dpkg-deb").arg("-x").arg(&path).arg(&beside))?;
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        if name.starts_with(&format!("{QEMU}_")) || (name.starts_with("linux-image-") && !name.starts_with(KERNEL)) {
            let fields = ["${Package} ", "${Version}\\n"].concat();
            versions += &run(Command::new("dpkg-deb").arg("--show").arg(format!("--showformat={fields}")).arg(&path))?;
        }
    }
    let fresh = Packages { root: beside.clone(), versions };
    let qemu = fresh.qemu();
    run(Command::new(&qemu[0]).args(&qemu[1..]).args(["-device", "vfio-user-pci,help"]))
        .context("this QEMU has no vfio-user-pci")?;
    fresh.kernel()?;
    fs::write(beside.join(COMPLETE), &fresh.versions)?;
    if root.exists() {
        fs::remove_dir_all(root)?;
    }
    fs::rename(&beside, root)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_that_are_there_are_not_downloaded_and_half_a_folder_is_not_taken_for_them() {
        let cache = tempfile::tempdir().unwrap();
        let root = cache.path().join("root");
        fs::create_dir_all(root.join("boot")).unwrap();
        fs::write(root.join(COMPLETE), "linux 6\n").unwrap();
        let packages = Packages::get(cache.path()).unwrap();
        assert_eq!(packages.versions, "linux 6\n");
        assert!(packages.kernel().is_err(), "none");
        for (name, only) in [("vmlinuz-6", true), ("config-6", true), ("vmlinuz-7", false)] {
            fs::write(root.join("boot").join(name), []).unwrap();
            assert_eq!(packages.kernel().is_ok(), only, "{name}");
        }
    }
}
