//! `ours measure WORKLOAD [name=value ...]`: kpg, built with this workspace's profile; one line of JSON.
#![forbid(unsafe_code)]

use workloads::Spec;

fn main() -> Result<(), String> {
    let mut words = std::env::args().skip(1);
    match words.next().as_deref() {
        Some("measure") => println!("{}", figures::measure(&Spec::parse(words)?).line()),
        _ => return Err("ours measure WORKLOAD [name=value ...]".to_string()),
    }
    Ok(())
}
