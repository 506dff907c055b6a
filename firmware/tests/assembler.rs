//! Every mistake is refused at its line and column.

use nearpm_firmware::{Source, assemble};

/// The message of the refusal of one text (with an image line in front, so that line 1 of `text` is
/// line 2).
fn refusal(text: &str) -> String {
    let text = format!("image test revision 1\n{text}");
    assemble(&[Source { name: "t.npm", text: &text }]).expect_err("the text must be refused").to_string()
}

/// A program `p = 0x12` with these declarations and instructions.
fn program(declarations: &str, code: &str) -> String {
    format!("program p = 0x12\n{declarations}\nbegin\n{code}\n")
}

#[track_caller]
fn refused(text: &str, place: &str, message: &str) {
    let found = refusal(text);
    assert!(found.starts_with(&format!("t.npm:{place}: ")), "place {place} in: {found}");
    assert!(found.contains(message), "{message:?} in: {found}");
}

#[test]
fn wrong_words_are_named_with_their_place() {
    refused("programme x = 1", "2:1", "expected `program` or `image`, found `programme`");
    refused("program x 1", "2:11", "expected `=`");
    refused("program x = 0x20", "2:13", "an opcode (0 to 31), found `0x20`");
    refused("program x =", "2:12", "found the end of the line");
    refused("program x = 1 2", "2:15", "expected the end of the line, found `2`");
    refused("program x = 1\n  fly south", "3:3", "a declaration or `begin`, found `fly`");
    refused("program x = 1\n  read south", "3:8", "found `south`");
    refused("program x = 1", "2:1", "`begin`");
    refused("program x = 1\nbegin", "2:1", "without end");
    refused("program x = 1\nbegin\n  jump 3", "4:3", "an instruction, found `jump`");
    refused("program x = 1\nbegin\n  end happily", "4:7", "`ok`, `memory_error`, `firmware_fault`");
    refused("image again revision 2", "2:1", "named twice");
    refused("program a = 1\nbegin\nend\nprogram b = 1\nbegin\nend", "5:1", "opcode 0x01 already has the program a");
}

#[test]
fn columns_count_characters_and_comments_are_skipped() {
    refused("; ä comment\nprogram ä = 1 ; so\nbegin\nend ü", "5:5", "found `ü`");
}

#[test]
fn declarations_must_make_sense() {
    refused(&program("  read destination", "end"), "3:3", "`read source`");
    refused(&program("  write source", "end"), "3:3", "source can only be read");
    refused(&program("  read source\n  read source", "end"), "4:8", "source is declared twice");
    refused(&program("  ordered\n  ordered", "end"), "4:3", "`ordered` is declared twice");
    refused(&program("  logs auxiliary", "end"), "3:8", "found `auxiliary`");
    refused(&program("  logs source", "end"), "2:1", "has a log entry");
    refused(&program("  congruent", "end"), "2:1", "congruent needs byte ranges");
    refused(&program("  word destination\n  value auxiliary", "switch destination\nend"), "2:1", "is ordered");
    refused(&program("  maps", "end"), "2:1", "privileged");
    refused(&program("  maps\n  privileged", "wait\nend"), "6:1", "does nothing but end");
    refused(&program("  commits\n  ordered", "end"), "2:1", "commits stores a word");
    refused(&program("  value auxiliary", "end"), "3:3", "nothing stores it");
    refused(&program("  read source", "end"), "2:1", "source is declared and not used");
    refused(&program("  alloc destination", "end"), "2:1", "says by `logs`");
}

/// The declaration of an undo log.
const LOG: &str = "  read source\n  alloc destination\n  logs source";

#[test]
fn a_log_entry_is_data_and_then_its_head() {
    refused(&program(LOG, "gen destination undo source\nend"), "7:1", "without a copy");
    refused(&program(LOG, "copy lines source -> destination + 1 line\nend"), "2:1", "gets no head");
    refused(&program(LOG, "copy lines source -> destination\nend"), "7:1", "line 1 of the entry");
    refused(&program(LOG, "copy bytes source -> destination + 1 line\nend"), "7:1", "line 1 of the entry");
    refused(
        &program(LOG, "copy lines source -> destination + 1 line\ngen destination undo destination\nend"),
        "8:1",
        "not the logged operand",
    );
    refused(
        &program(LOG, "copy lines source -> destination + 1 line\nwait\ngen destination undo source\nend"),
        "9:1",
        "no wait",
    );
    refused(&program(LOG, "copy lines destination -> source\nend"), "7:1", "not a byte range");
    refused(&program(LOG, "copy lines source -> auxiliary\nend"), "7:1", "neither a byte range nor a log entry");
    refused(&program(LOG, "copy lines source -> destination + 1 page\nend"), "7:38", "expected `lines`");
    refused(&program(LOG, "gen destination diary source\nend"), "7:17", "`undo`, `redo`, `checkpoint`");
}

#[test]
fn ranges_are_copied_exactly() {
    let ranges = "  read source\n  write destination\n  congruent";
    refused(&program(ranges, "copy lines source -> destination\nend"), "7:1", "does not own");
    refused(&program(ranges, "copy bytes source -> destination + 2 lines\nend"), "7:1", "adds lines");
    let loose = "  read source\n  write destination";
    refused(&program(loose, "copy bytes source -> destination\nend"), "6:1", "congruent");
}

#[test]
fn a_replay_must_not_read_what_the_program_overwrote() {
    let both = "  read source in ring\n  write destination\n  alloc auxiliary\n  logs destination\n  congruent";
    let log = "copy lines destination -> auxiliary + 1 line\ngen auxiliary undo destination\n";
    refused(
        &program(both, &format!("{log}copy bytes source -> destination\nend")),
        "11:1",
        "a replay would read the new value",
    );
    let text =
        format!("image t revision 1\n{}", program(both, &format!("{log}wait\ncopy bytes source -> destination\nend")));
    assemble(&[Source { name: "t.npm", text: &text }]).expect("with a wait it assembles");
}

#[test]
fn a_copy_must_not_read_what_is_still_being_written() {
    let both = "  read source in ring\n  write destination\n  alloc auxiliary\n  logs destination\n  congruent";
    let log = "copy lines destination -> auxiliary + 1 line\ngen auxiliary redo destination\nend";
    let with = |between: &str| program(both, &format!("copy bytes source -> destination\n{between}{log}"));
    refused(&with(""), "10:1", "copies from destination, to which the program has copied");
    let text = format!("image t revision 1\n{}", with("wait\n"));
    assemble(&[Source { name: "t.npm", text: &text }]).expect("with a wait it assembles");
}

#[test]
fn words_are_stored_from_the_value() {
    let word = "  word destination in ring\n  ordered\n  value auxiliary";
    refused(&program(word, "delete destination\nend"), "7:1", "`commits`");
    let log = "  read source\n  alloc destination\n  logs source\n  synchronises";
    refused(
        &program(log, "copy lines source -> destination + 1 line\ngen destination undo source\nend"),
        "2:1",
        "must not synchronise",
    );
    refused(&program("  word destination\n  ordered", "switch destination\nend"), "6:1", "`value auxiliary`");
    refused(&program("  ordered\n  value auxiliary", "switch destination\nend"), "6:1", "not a word");
    refused(&program(word, "end"), "5:3", "nothing stores it");
    let taken = "  word destination\n  ordered\n  value auxiliary\n  write auxiliary";
    refused(&program(taken, "switch destination\nend"), "8:1", "declared as an address");
}

#[test]
fn the_whole_must_fit_and_be_named() {
    let program: String = (0..32).map(|i| format!("program p{i} = {i}\nbegin\n{}end\n", "wait\n".repeat(4))).collect();
    assert!(refusal(&program).contains("161 words"), "{}", refusal(&program));
    let unnamed = assemble(&[Source { name: "t.npm", text: "" }]).unwrap_err();
    assert!(unnamed.to_string().contains("no source names the image"));
}
