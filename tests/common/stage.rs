//! The package as `packaging/install` installs it, made once for all tests of a build and copied to every machine.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::UNIX_EPOCH;

/// The source tree.
pub const TREE: &str = env!("CARGO_MANIFEST_DIR");

/// The directory of the binaries under test.
pub fn build() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_rootwrapd"))
        .parent()
        .expect("a binary has a directory")
}

/// The staged package; made by the first caller, whichever process it is in.
pub fn stage() -> PathBuf {
    let base = Path::new(env!("CARGO_TARGET_TMPDIR")).join("stage");
    fs::create_dir_all(&base).expect("target directory");
    let lock = File::create(base.join("lock")).expect("lock file");
    rustix::fs::flock(&lock, rustix::fs::FlockOperation::LockExclusive).expect("flock");
    let stage = base.join(fingerprint());
    if !stage.join("complete").exists() {
        remove_others(&base);
        let image = stage.join("image");
        fs::create_dir_all(&image).expect("stage");
        fs::set_permissions(&image, PermissionsExt::from_mode(0o755)).expect("chmod");
        install(&image);
        File::create(stage.join("complete")).expect("mark");
    }
    stage.join("image")
}

fn install(image: &Path) {
    let output = Command::new(Path::new(TREE).join("packaging/install"))
        .env("DESTDIR", image)
        .env("BUILD", build())
        .env_remove("PREFIX")
        .output()
        .expect("packaging/install");
    assert!(
        output.status.success(),
        "packaging/install failed: {}",
        String::from_utf8_lossy(&output.stderr)
    );
}

/// Changes with everything that is installed.
fn fingerprint() -> String {
    let mut hasher = DefaultHasher::new();
    for program in ["rootwrap", "rootwrap-quick", "rootwrapctl", "rootwrapd", "rootwrap-launcher"] {
        hash_file(&build().join(program), &mut hasher);
    }
    for directory in ["systemd", "filters", "packaging"] {
        hash_tree(&Path::new(TREE).join(directory), &mut hasher);
    }
    let mut name = String::new();
    write!(name, "{:016x}", hasher.finish()).expect("a string takes all");
    name
}

fn hash_tree(path: &Path, hasher: &mut DefaultHasher) {
    let Ok(entries) = fs::read_dir(path) else { return };
    let mut paths: Vec<_> = entries.map(|entry| entry.expect("entry").path()).collect();
    paths.sort();
    for path in paths {
        if path.is_dir() {
            hash_tree(&path, hasher)
        } else {
            hash_file(&path, hasher)
        }
    }
}

fn hash_file(path: &Path, hasher: &mut DefaultHasher) {
    let metadata = fs::metadata(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let modified = metadata.modified().expect("mtime").duration_since(UNIX_EPOCH).expect("after 1970");
    (path, metadata.len(), modified).hash(hasher);
}

fn remove_others(base: &Path) {
    for entry in fs::read_dir(base).expect("stage").flatten() {
        if entry.path().is_dir() {
            fs::remove_dir_all(entry.path()).expect("an older stage");
        }
    }
}
