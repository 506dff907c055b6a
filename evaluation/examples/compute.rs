//! Measures compute times and prints the file that stores them: `cargo run --release -p nearpm-evaluation --example compute -- "machine, date"`.

fn main() -> anyhow::Result<()> {
    let origin = std::env::args().nth(1).unwrap_or_else(|| "not said".into());
    let compute = nearpm_evaluation::compute::Compute::measure(origin, &|what| eprintln!("{what}"))?;
    print!("{}", toml::to_string(&compute)?);
    Ok(())
}
