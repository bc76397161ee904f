//! Stacks of several files: the Compose file, the files that it reads, and the files next to it.

/// A name and the files, below the stack's directory.
pub type Several = (&'static str, &'static [(&'static str, &'static str)]);

/// What every one of them asks of `.env`, absolute paths among it.
const ENV: &str =
    "PASS='se$cret # x'\nPORT=8000\nDATA=./data\nABS=/srv/abs\nX=xx\nCOMPOSE_PROFILES=on\n";

pub const STACKS: &[Several] = &[
    (
        "override",
        &[
            (".env", ENV),
            ("a.env", "A_ENV=$X\nB_ENV='$5'\n"),
            (
                "docker-compose.yml",
                "services:\n  a:\n    image: busybox:${TAG:-1}\n    env_file: [.env, a.env]\n    environment: [\"PASS=${PASS}\", \"LIT=$$x\", BARE, HOME]\n    ports: [\"${PORT}:80\", \"${IP:-127.0.0.1}:90:90/udp\"]\n    volumes:\n      - ./d:/d\n      - ${DATA}:/data\n      - ${DATA2:-./x}/db:/db\n      - named:/n\n      - ~/h:/h\n      - {type: bind, source: \"${ABS}/x\", target: /x}\n    command: echo $$HOME ${X}\n    privileged: ${PRIV:-false}\n  b:\n    build: ./ctx\n    profiles: [on]\n  c:\n    image: x\n    profiles: [off]\nvolumes:\n  named:\nsecrets:\n  s: {file: \"${ABS}/s\"}\n",
            ),
            (
                "docker-compose.override.yml",
                "services:\n  a:\n    environment: {OVER: \"${X}-o\"}\n    volumes: [\"./over:/d\"]\n    ports: !override [\"${PORT}:81\"]\n    secrets: [s]\n",
            ),
        ],
    ),
    (
        "include",
        &[
            (".env", ENV),
            (
                "docker-compose.yml",
                "name: other\ninclude:\n  - sub/compose.yml\n  - path: more/compose.yml\n    project_directory: .\n    env_file: more/o.env\nservices:\n  a:\n    image: busybox\n    depends_on: [s]\n",
            ),
            ("sub/.env", "SUB=st\nX=no\n"),
            ("sub/s.env", "S=$X\n"),
            (
                "sub/compose.yml",
                "services:\n  s:\n    image: busybox:${SUB:-none}\n    volumes: [\"./sd:/sd\"]\n    env_file: s.env\n    environment: {T: \"${X}\"}\n",
            ),
            ("more/o.env", "O=ot\n"),
            (
                "more/compose.yml",
                "services:\n  o: {image: \"busybox:${O:-none}\", volumes: [\"./od:/od\"]}\n",
            ),
        ],
    ),
    (
        "extends-file",
        &[
            (".env", ENV),
            (
                "docker-compose.yml",
                "services:\n  a:\n    extends: {file: lib/base.yml, service: base}\n    hostname: ${X}\n",
            ),
            ("lib/b.env", "B=1\n"),
            (
                "lib/base.yml",
                "services:\n  base:\n    image: x\n    volumes: [\"./libd:/libd\", \"${DATA}/l:/l\", {type: bind, source: \"${ABS}\", target: /abs}]\n    env_file: b.env\n    environment: {L: \"${PASS}\"}\n",
            ),
        ],
    ),
    (
        "compose-file",
        &[
            (
                ".env",
                "COMPOSE_FILE=docker-compose.yml:two.yml\nCOMPOSE_PROJECT_NAME=named\nX=1\n",
            ),
            (
                "docker-compose.yml",
                "services:\n  a:\n    image: busybox:$X\n    volumes: [\"./d:/d\"]\n    env_file: .env\n",
            ),
            (
                "two.yml",
                "services:\n  a:\n    volumes: [\"../e:/e\"]\n    labels: {x: \"$X$$\"}\n",
            ),
        ],
    ),
];
