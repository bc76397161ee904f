//! Nothing is sent that versions of Compose read in different ways (N37).

use std::fs;

use serde_json::Value;
use stacklift::rewrite::{
    combine::differences,
    faithful::{self, Context, EnvFiles, Runs},
};

use crate::{
    judge::{held, original, shell},
    on_two_threads, required,
};

/// Scalars of YAML. Some are text only in some places, or to some parsers.
const SCALARS: &str = r#"0 -0 +1 010 0o10 0x1F 0b11 1_000 1e3 1. .5 1:30 1.10 12e03 y yes on TRUE null ~ "" << = 2001-01-01 0.00001 1e21
100000000000000000000 ? ?a a?b a? :a :: a: a:b -a - @ %a !a &a.b|x a#b é '!!str 1' "a\x41" 'a''b' [] {} [a] {a:1} {a:} "a":b http://a/?b=c
:8080 ::1 --a=:80 a? *.b 1d $$a ${A} ${A:-b?c} ${A:-:b} {{.Name}} a|b a>b a,b a;b \n a\tb"#;

const PLACES: [&str; 4] = [
    "labels: {k: @}",
    "labels:\n      k: @",
    "command: [a, @]",
    "environment:\n      - K=@",
];

/// Commands as texts, which Compose splits.
const COMMANDS: &str = r#"sh -c 'a\nb'
sh -c "a\nb"
a\tb
a\ b c
a \\n
echo `a 'b'`
echo "`a 'b'`"
echo $$(a 'b c')
echo $$(a \'b c\')
echo \$$HOME
a "b 'c' d" 'e "f" g'
a=b "c=d e" '' ""
a && b | c > d 2>&1; e
${A} -x
${N}"#;

const PORTS: &str =
    "80 80:80 127.0.0.1:80:80 [::1]:80:80 ::1:80:80 fe80::1:80:80 80-81:80-81/udp 22:22";

#[test]
#[ignore = "needs several compose programs: run scripts/test"]
fn n37_what_is_edited_means_the_same_to_an_older_version_with_compose_5() {
    let [older, newer] = ["STACKLIFT_TEST_COMPOSE_2_40", "STACKLIFT_TEST_COMPOSE_5"].map(required);
    let scalars = SCALARS.split([' ', '\n']).flat_map(|scalar| {
        let scalar = scalar.replace('|', " ");
        PLACES.map(|place| place.replace('@', &scalar))
    });
    let commands = COMMANDS
        .lines()
        .map(|command| format!("command: >-\n      {command}"));
    let ports = PORTS.split(' ').map(|port| format!("ports: [\"{port}\"]"));
    let texts: Vec<_> = scalars.chain(commands).chain(ports).collect();
    let read = on_two_threads(texts.len(), |at| {
        let service = &texts[at];
        let text = format!("services:\n  a:\n    image: x\n    {service}\n");
        let env = "A=v\nN=a\\tb\n";
        let folder = tempfile::tempdir().expect("a folder");
        let dir = folder.path().join("x");
        fs::create_dir(&dir).expect("create");
        fs::write(dir.join("compose.yaml"), &text).expect("write");
        fs::write(dir.join(".env"), env).expect("write");
        let expected = original(&newer, &dir, &[], &shell(&dir, "")).ok()?;
        let files = EnvFiles::new();
        let context = Context {
            stack_dir: dir.to_str()?,
            file: "compose.yaml",
            env_file: ".env",
            home: None,
            shell: &|_| None,
            project: None,
            overrides: &[],
            env_files: &files,
        };
        let edited = faithful::rewrite(&text, Some(env), &context, &Runs::default());
        // Compose on this host resolves the text, or it is refused.
        let Ok(edited) = edited else {
            return Some((service.clone(), None));
        };
        let sent = edited.stack_env();
        let found = held(&older, folder.path(), "x", &edited.text, &sent, &[]);
        let wrong = match &found {
            Err(why) => Some(why.clone()),
            Ok(found) if differences(&expected, found).is_empty() => None,
            Ok(found) => Some(format!(
                "{} became {}",
                of_service(&expected),
                of_service(found)
            )),
        };
        Some((service.clone(), Some(wrong)))
    });
    let edited = read.values().flatten().count();
    println!("{} texts, {edited} of them edited", read.len());
    assert!(edited > 150, "only {edited} are edited");
    let wrong: Vec<_> = read
        .iter()
        .filter_map(|(service, wrong)| Some((service, wrong.as_ref()?.as_ref()?)))
        .collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

fn of_service(config: &Value) -> &Value {
    &config["services"]["a"]
}
