use proptest::prelude::*;

use super::{DotenvError, parse};

fn read(text: &str) -> Result<Vec<(String, String)>, DotenvError> {
    parse(text, &|name| (name == "OUTER").then(|| "outer".to_owned()))
}

/// What is read is `expected`, as `NAME|value`.
fn check(text: &str, expected: &[&str]) {
    let read = read(text).expect(text).into_iter();
    let read: Vec<_> = read.map(|(name, value)| name + "|" + &value).collect();
    assert_eq!(read, expected, "{text:?}");
}

#[test]
fn plain_statements() {
    check("", &[]);
    let text = "A=1\nB = 2 \r\n\n  C:3\nD: 4\n";
    check(text, &["A|1", "B|2", "C|3", "D|4"]);
    let text = "A=1=2\nA.b-c[0]=x\nÄ=y\n";
    check(text, &["A|1=2", "A.b-c[0]|x", "Ä|y"]);
    check("A=\nB=\n", &["A|", "B|"]);
    check("A=1\nB=2\nA=3\n", &["A|3", "B|2"]);
    check("\u{feff}A=1\n", &["A|1"]);
    let text = "export A=1\nexport\tB=2\nexportC=3\n";
    check(text, &["A|1", "B|2", "exportC|3"]);
}

#[test]
fn comments() {
    check("# c\nA=1 # c\nB=1# c\n  # d\n#", &["A|1", "B|1# c"]);
    check("A=#x\nB= #x\nC=\t#x\n", &["A|#x", "B|#x", "C|#x"]);
    let text = "A='x # y' # z\nB=\"x # y\"#z\n";
    check(text, &["A|x # y", "B|x # y"]);
}

#[test]
fn quotes_and_escapes() {
    check(r#"A='x $B \n "' "#, &[r#"A|x $B \n ""#]);
    check(r"A='it\'s'", &["A|it's"]);
    check(r#"A="a\"b\\c\td\e""#, &["A|a\"b\\c\td\\e"]);
    let text = r#"A="\$OUTER $OUTER $$OUTER""#;
    check(text, &["A|$OUTER outer $OUTER"]);
    check(r#"A="\0101\012\0999\c\0""#, &[r"A|A\12\999\c\"]);
    let text = "A=\"l1\nl2\"\nB='x\r\ny'\n";
    check(text, &["A|l1\nl2", "B|x\r\ny"]);
    check("A=x'y'\nB=''\n", &["A|x'y'", "B|"]);
    check("A=\"x\" B=y\n", &["A|x", "B|y"]);
    check("A=a\\nb\n", &["A|a\\nb"]);
}

#[test]
fn variables() {
    check("A=1\nB=$A-${A}-${C:-d}\n", &["A|1", "B|1-1-d"]);
    check("OUTER=own\nB=$OUTER\n", &["OUTER|own", "B|outer"]);
    check("A='$OUTER'\nB=$A\n", &["A|$OUTER", "B|$OUTER"]);
}

#[test]
fn bare_keys() {
    check("OUTER\nNONE\nA=1\n", &["OUTER|outer", "A|1"]);
    check("OUTER \nA=1\n", &["OUTER|outer", "A|1"]);
    check("A=1\nNONE", &["A|1", "|NONE"]);
}

#[test]
fn errors_name_the_line_and_nothing_else() {
    let (character, missing) = (
        "unexpected character in variable name",
        "required variable is missing a value",
    );
    for (text, line, problem) in [
        ("A B=secret\n", 1, "key cannot contain a space"),
        ("A=1\n\nA B\n", 3, "key cannot contain a space"),
        ("OUTER \nse cret=1", 2, "key cannot contain a space"),
        ("A=1\nse%cret=1\n", 2, character),
        ("'A'=1\n", 1, character),
        (
            "A=\"l1\nl2\"\nB='secret\nx=1\n",
            3,
            "unterminated quoted value",
        ),
        (
            "A=\"l1\nl2\"\n# c\nB=${secret\n",
            4,
            "invalid interpolation format",
        ),
        ("A=${secret:?secret}\n", 1, missing),
        ("export ", 1, "zero length string"),
    ] {
        let error = read(text).expect_err(text);
        assert_eq!((error.line, error.problem), (line, problem), "{text:?}");
        assert!(!format!("{error}{error:?}").contains("secret"), "{error}");
    }
    let error = read("a b=1").expect_err("a blank");
    assert_eq!(error.to_string(), "line 1: key cannot contain a space");
}

#[test]
fn values_that_double_line_by_line_do_not_fill_the_memory() {
    let doubled = (1..60).map(|line| {
        let before = line - 1;
        format!("A{line}=${{A{before}}}${{A{before}}}\n")
    });
    let text: String = std::iter::once("A0=0123456789\n".to_owned())
        .chain(doubled)
        .collect();
    let error = read(&text).expect_err("too long");
    assert_eq!(error.problem, "variables make the values longer than 8 MiB");
    let many = format!("A={}\nB={}\n", "x".repeat(1 << 20), "$A".repeat(100_000));
    assert_eq!(read(&many).map_err(|error| error.line), Err(2));
}

proptest! {
    /// N11: what is quoted this way arrives exactly.
    #[test]
    fn single_quotes_keep_everything_but_themselves(value in "[^'\\\\]{0,20}") {
        let read = read(&format!("A='{value}'\n"));
        prop_assert_eq!(read, Ok(vec![("A".to_owned(), value)]));
    }

    /// N11, for values with a single quote.
    #[test]
    fn double_quotes_with_escapes_keep_everything(value in any::<String>()) {
        let escaped = value.replace('\\', "\\\\").replace('"', "\\\"").replace('$', "\\$");
        let read = read(&format!("A=\"{escaped}\"\n"));
        prop_assert_eq!(read, Ok(vec![("A".to_owned(), value)]));
    }

    #[test]
    fn any_text_is_read_or_refused(text in "([A-C=:#'\"\\\\$ \t\n\r{}-]|export |\\$\\{A:-){0,40}") {
        let _ = read(&text);
    }
}
