//! Published graphs and facts, where they are at hand: a directory named in `KPG_DATA`, or else `../shared/data` beside
//! the workspace.
#![forbid(unsafe_code)]

use crate::generate::random_edge;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

/// Where the data is, if anywhere.
pub fn directory() -> Option<PathBuf> {
    let named = std::env::var_os("KPG_DATA").map(PathBuf::from);
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data");
    named.or(Some(beside)).filter(|directory| directory.is_dir())
}

/// The edges in a file of that directory: two numbers a line, whatever lies between and after; other lines are
/// skipped, and those that begin with #.
///
/// # Errors
/// A file that is not there or cannot be unpacked.
pub fn edges(name: &str) -> std::io::Result<Vec<(u32, u32)>> {
    pairs(open(name)?)
}

/// A file of that directory, unpacked if its name ends in ".zst".
fn open(name: &str) -> std::io::Result<Box<dyn Read>> {
    let directory = directory().ok_or_else(|| std::io::Error::other("no directory of data: set KPG_DATA"))?;
    let file = File::open(directory.join(name))?;
    Ok(if name.ends_with(".zst") {
        Box::new(ruzstd::decoding::StreamingDecoder::new(file).map_err(std::io::Error::other)?)
    } else {
        Box::new(file)
    })
}

/// Two numbers a line.
fn pairs(from: impl Read) -> std::io::Result<Vec<(u32, u32)>> {
    let mut edges = Vec::new();
    for line in BufReader::new(from).lines() {
        let line = line?;
        if line.starts_with('#') {
            continue;
        }
        let mut words = line.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
        if let (Some(Ok(source)), Some(Ok(target))) = (words.next().map(str::parse), words.next().map(str::parse)) {
            edges.push((source, target));
        }
    }
    Ok(edges)
}

/// What a points-to analysis starts from.
#[derive(Clone, Debug, Default)]
pub struct Facts {
    /// (to, from)
    pub assign: Vec<(u32, u32)>,
    /// (pointer, what it points to)
    pub dereference: Vec<(u32, u32)>,
}

/// The facts of this name: "made" are a few that need no file; else a directory in an archive of that directory.
///
/// # Errors
/// As `edges`; a name that is not in the archive.
pub fn facts(name: &str) -> std::io::Result<Facts> {
    if name == "made" {
        let pairs = |count, seed| (0..count).map(|i| random_edge(60, seed, i)).collect();
        return Ok(Facts { assign: pairs(60, 51), dereference: pairs(30, 52) });
    }
    let mut facts = Facts::default();
    for entry in tar::Archive::new(open("carac-httpd-10k.tar.zst")?).entries()? {
        let entry = entry?;
        let path = entry.path()?.into_owned();
        if path.ends_with(format!("{name}/facts/Assign.csv")) {
            facts.assign = pairs(entry)?;
        } else if path.ends_with(format!("{name}/facts/Dereference.csv")) {
            facts.dereference = pairs(entry)?;
        }
    }
    if facts.assign.is_empty() {
        return Err(std::io::Error::other(format!("there are no facts named {name}")));
    }
    Ok(facts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_are_no_pairs_are_skipped() {
        let text = "Int\tInt\n# 7 8 9\n73\t74\n\n46,81\n5 6 0.25\n";
        assert_eq!(pairs(text.as_bytes()).expect("text"), [(73, 74), (46, 81), (5, 6)]);
    }

    /// Where the data is at hand.
    #[test]
    fn files_have_the_published_sizes() {
        if directory().is_none() {
            return;
        }
        assert_eq!(edges("bigdatalog-tree11.csv.zst").expect("a file").len(), 71_390);
        let facts = facts("cspa10k").expect("an archive");
        assert_eq!((facts.assign.len(), facts.dereference.len()), (9_999, 9_999));
    }
}
