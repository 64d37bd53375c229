//! Published graphs and facts, where they are at hand: a directory named in `KPG_DATA`, or else `../shared/data` beside
//! the workspace.
#![forbid(unsafe_code)]

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

/// Where the data is, if anywhere.
pub fn directory() -> Option<PathBuf> {
    let named = std::env::var_os("KPG_DATA").map(PathBuf::from);
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data");
    named.or(Some(beside)).filter(|directory| directory.is_dir())
}

/// The edges in a file of that directory: two numbers a line, whatever lies between and after; other lines are skipped.
///
/// # Errors
/// A file that is not there or cannot be unpacked.
pub fn edges(name: &str) -> std::io::Result<Vec<(u32, u32)>> {
    let directory = directory().ok_or_else(|| std::io::Error::other("no directory of data: set KPG_DATA"))?;
    let file = File::open(directory.join(name))?;
    let reader: Box<dyn Read> = if name.ends_with(".zst") {
        Box::new(ruzstd::decoding::StreamingDecoder::new(file).map_err(std::io::Error::other)?)
    } else {
        Box::new(file)
    };
    let mut edges = Vec::new();
    for line in BufReader::new(reader).lines() {
        let line = line?;
        let mut words = line.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
        if let (Some(Ok(source)), Some(Ok(target))) = (words.next().map(str::parse), words.next().map(str::parse)) {
            edges.push((source, target));
        }
    }
    Ok(edges)
}
