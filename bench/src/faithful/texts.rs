//! Generated Compose files.

const HEAD: &str = "# The defaults of every service.
x-base: &base
  restart: unless-stopped
  env_file: .env
  logging: &logging
    driver: json-file
    options: {max-size: \"10m\", max-file: '3'}
networks:
  front: {name: front, external: true}
  back:
volumes:
  cache: {}
  db:
  uploads: # sent by users
services:
";

/// An ordinary Compose file of at least that size.
///
/// It has 774 bytes per service, like 271 published stacks, and 2.5 edits per kilobyte, where those have one.
pub fn plausible(bytes: usize) -> String {
    written(bytes, four_services)
}

/// A Compose file with nine edits per kilobyte.
pub fn dense(bytes: usize) -> String {
    written(bytes, dense_services)
}

/// A Compose file of 2.5 kilobytes: six services with nine edits per kilobyte.
pub fn small() -> String {
    dense(1600)
}

fn written(bytes: usize, services: fn(usize) -> String) -> String {
    let mut text = HEAD.to_owned();
    let mut number = 0;
    while text.len() < bytes {
        number += 1;
        text += &services(number);
    }
    text
}

fn four_services(number: usize) -> String {
    format!(
        "
  # ---------------------------------------------------------------------------
  # The web server of site {number}. Its certificates are on the host, its files in
  # the directory of the stack.
  # ---------------------------------------------------------------------------
  web{number}:
    <<: *base
    image: nginx:1.27-alpine # a comment
    container_name: site-{number}-web
    hostname: web{number}.example.org
    environment:
      - TZ=${{TZ:-Europe/Berlin}}
      - \"PASSWORD=${{PASSWORD:?set it in .env}}\"
      - NGINX_ENTRYPOINT_QUIET_LOGS=1
    volumes:
      - ./site{number}:/usr/share/nginx/html:ro
      - ${{CERTS:-./certs}}/web:/certs:ro
      - cache:/var/cache/nginx
      - /etc/localtime:/etc/localtime:ro
    networks: [front, back]
    ports:
      - \"8080:80\"
      - '127.0.0.1:8443:443' # for the tunnel alone
    labels:
      - \"traefik.enable=true\"
      - \"traefik.http.routers.web{number}.rule=Host(`web{number}.example.org`)\"
      - \"traefik.http.routers.web{number}.entrypoints=websecure\"
      - \"traefik.http.routers.web{number}.tls.certresolver=le\"
      - \"traefik.http.services.web{number}.loadbalancer.server.port=80\"
    depends_on:
      db{number}:
        condition: service_healthy
  db{number}:
    image: 'postgres:16-alpine'
    restart: always
    logging: *logging
    shm_size: 256mb
    env_file:
      - .env
      - app.env # of the application, too
    environment:
      POSTGRES_USER: app
      POSTGRES_PASSWORD: \"${{DB_PASSWORD}}\"
      POSTGRES_INITDB_ARGS: \"--data-checksums --encoding=UTF8\"
    volumes:
      - db:/var/lib/postgresql/data/site{number}
    networks:
      - back
    healthcheck:
      test: [\"CMD-SHELL\", \"pg_isready -U $$POSTGRES_USER -d app || exit 1\"]
      interval: 10s
      timeout: 5s
      retries: 5
      start_period: 30s
    deploy:
      resources:
        limits: {{cpus: '1.5', memory: 512M}}
  cache{number}:
    <<: *base
    image: valkey/valkey:8-alpine
    command: [\"valkey-server\", \"--save\", \"60\", \"1\", \"--loglevel\", \"warning\"]
    networks: [back]
    # Uncomment it to look inside from the host:
    # ports:
    #   - \"6379:6379\"
    healthcheck:
      test: valkey-cli ping | grep PONG
      interval: 1s
      timeout: 3s
      retries: 5
    cap_drop: [ALL]
    security_opt:
      - no-new-privileges:true
    read_only: true
    tmpfs: /run
  job{number}:
    <<: *base
    image: registry.example.org/site/job:1.{number}
    build:
      context: ./job
      args: {{VERSION: \"1.{number}\"}}
    entrypoint:
      - /bin/sh
      - -c
      - |
        # Once a night, and a little later each time.
        while sleep 86400; do
          echo \"the job of site {number}\" && /usr/local/bin/job --quiet --of {number}
        done
    user: \"1000:1000\"
    volumes: ['./config.yml:/srv/config.yml:ro', \"uploads:/srv/uploads\"]
    networks: [back]
    environment:
      JOB_TARGET: http://web{number}:80/
      JOB_REPORT: $HOME/reports/{number}
      JOB_LEVEL: info
"
    )
}

fn dense_services(number: usize) -> String {
    format!(
        "
  # The web server.
  web{number}:
    <<: *base
    image: nginx:1.27-alpine # a comment
    environment:
      - TZ=${{TZ:-Europe/Berlin}}
      - \"PASSWORD=${{PASSWORD:?set it in .env}}\"
      - HOME_OF_WEB=$HOME/web{number}
    volumes:
      - ./data{number}:/var/lib/data
      - ${{CERTS:-./certs}}/web:/certs:ro
      - ~/web{number}:/home/web
      - cache:/cache/{number}
      - type: bind
        source: ./nginx.conf
        target: /etc/nginx/nginx.conf
    ports: [\"8080:80\", '127.0.0.1:8443:443']
    labels:
      traefik.enable: \"true\"
      traefik.http.routers.web{number}.rule: Host(`web{number}.example.org`)
    depends_on:
      - db{number}
  db{number}:
    image: 'postgres:16-alpine'
    logging: *logging
    env_file:
      - .env
      - app.env # of the application, too
    environment:
      POSTGRES_USER: app
      POSTGRES_PASSWORD: \"${{DB_PASSWORD}}\"
    healthcheck:
      test: [\"CMD-SHELL\", \"pg_isready -U $$POSTGRES_USER\"]
      interval: 10s
  job{number}:
    <<: *base
    build:
      context: ./job
      args: {{VERSION: \"1.2\"}}
    entrypoint:
      - /bin/sh
      - -c
      - |
        # Once a night.
        while sleep 86400; do ./job --of {number}; done
    volumes: [\"../shared/job{number}:/job\", './config.yml:/config.yml:ro']
"
    )
}

/// Services in a chain: each extends the one before it.
pub const CHAIN: &str =
    "services:\n  s0:\n    image: x\n    env_file: app.env\n§  s%+:\n    extends: s%\n§";

/// A name, the template of a file, and the number of items in the small file.
type Shape = (&'static str, &'static str, usize);

pub const SHAPES: [Shape; 12] = [
    (
        "services",
        "services:\n§  s%:\n    image: x\n    volumes: ['./d:/d']\n§",
        30_000,
    ),
    (
        "services that merge one anchor",
        "x-base: &base {image: x, env_file: app.env}\nservices:\n§  s%:\n    <<: *base\n    environment: [A=1]\n§",
        30_000,
    ),
    (
        "services with an anchor and a build",
        "services:\n§  s%: &s%\n    build: .\n§",
        30_000,
    ),
    (
        "services with their own env files",
        "services:\n§  s%:\n    image: x\n    env_file: [.env, app.env]\n§",
        30_000,
    ),
    (
        "env files in one list",
        "services:\n  s:\n    image: x\n    env_file:\n§      - app.env\n§",
        30_000,
    ),
    (
        "entries of one environment, as a list",
        "services:\n  s:\n    image: x\n    env_file: app.env\n    environment:\n§      - V%=$HOME\n§",
        30_000,
    ),
    (
        "entries of one environment, as a mapping",
        "services:\n  s:\n    image: x\n    env_file: app.env\n    environment:\n§      V%: $HOME\n§",
        30_000,
    ),
    (
        "aliases of one anchor",
        "x-v: &v ./d:/d\nservices:\n  s:\n    image: x\n    volumes:\n§      - *v\n§",
        30_000,
    ),
    (
        "services that extend the same one",
        "services:\n  base:\n    build: .\n    env_file: app.env\n§  s%:\n    extends: base\n§",
        30_000,
    ),
    (
        "mappings in a chain of merges",
        "x-0: &a0 {image: x, env_file: app.env}\n§x-%+: &a%+ {<<: *a%}\n§services:\n  s: {<<: *a%}\n",
        150,
    ),
    ("secrets", "secrets:\n§  s%: {file: ./s}\n§", 30_000),
    ("volumes", "volumes:\n§  v%:\n§", 30_000),
];

/// The file of a template. What is between the two `§` is repeated; `%` is the number of the item, from 0, and `%+` is the next
/// one. After the items, `%` is their count.
pub fn repeated(template: &str, count: usize) -> String {
    let numbered = |part: &str, at: usize| {
        let next = (at + 1).to_string();
        part.replace("%+", &next).replace('%', &at.to_string())
    };
    let parts: Vec<&str> = template.split('§').collect();
    let items: String = (0..count).map(|at| numbered(parts[1], at)).collect();
    format!("{}{items}{}", parts[0], numbered(parts[2], count))
}
