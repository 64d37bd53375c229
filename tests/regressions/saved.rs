//! Replays inputs that a fuzz target once failed on, or that are hard: `fuzz/regressions/<target>/`, a file each.

use std::fs;
use std::path::{Path, PathBuf};

/// Where they lie: at the root of the workspace, for whichever package this is compiled.
pub fn directory() -> PathBuf {
    let above = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors();
    above.map(|path| path.join("fuzz/regressions")).find(|path| path.is_dir()).expect("it is in the repository")
}

/// Runs `check` on each input of a target, and names the one that fails.
pub fn replay(target: &str, check: impl Fn(&[u8])) {
    struct Named(String);
    impl Drop for Named {
        fn drop(&mut self) {
            if std::thread::panicking() {
                eprintln!("this input failed: {}", self.0);
            }
        }
    }
    let files = fs::read_dir(directory().join(target)).expect("each target has a directory");
    let mut paths: Vec<_> = files.map(|file| file.expect("it can be read").path()).collect();
    paths.sort();
    assert!(!paths.is_empty(), "{target} has no saved inputs");
    for path in paths {
        let named = Named(path.display().to_string());
        check(&fs::read(&path).expect("it can be read"));
        drop(named);
    }
}
