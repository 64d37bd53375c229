//! `peer measure WORKLOAD [name=value ...]`: one line of JSON.
#![forbid(unsafe_code)]

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> Result<(), String> {
    let mut words = std::env::args().skip(1);
    match words.next().as_deref() {
        Some("measure") => println!("{}", peers::measure(words)?.line()),
        _ => return Err("peer measure WORKLOAD [name=value ...] [idle=EFFORT] [progress=eager]".to_string()),
    }
    Ok(())
}
