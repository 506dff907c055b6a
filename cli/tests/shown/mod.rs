//! Output as pages show it, against output as a program prints it.

/// What a page shows behind a command, up to the next command or the end of the block.
pub fn shown<'a>(text: &'a str, command: &str) -> Vec<&'a str> {
    text.lines()
        .skip_while(|line| *line != command)
        .skip(1)
        .take_while(|line| !line.starts_with("$ ") && *line != "```")
        .collect()
}

/// Whether `output` is what is shown, where a line of three dots stands for any number of lines.
pub fn is_shown(shown: &[&str], output: &[&str]) -> Result<(), String> {
    let mut rest = output;
    let mut skipping = false;
    for wanted in shown {
        if *wanted == "..." {
            skipping = true;
            continue;
        }
        let at = match skipping {
            true => rest.iter().position(|line| line == wanted),
            false => (rest.first() == Some(wanted)).then_some(0),
        };
        let at = at.ok_or_else(|| format!("shown is {wanted:?}, printed {:?}", rest.first()))?;
        rest = &rest[at + 1..];
        skipping = false;
    }
    Ok(())
}
