# Every input that can be wrong fails before anything is made, with a sentence that says what to do. Each run has as many
# wrong inputs as there can be at once, and each must fail: a plan takes seconds.

mock_provider "google" {
  mock_data "google_project" {
    defaults = { number = "123456789012" }
  }
}

variables {
  project_id      = "acme-prod"
  environment     = "prod"
  release         = "v1.2.3"
  archives        = "../../../dist"
  auth            = { issuer = "https://securetoken.google.com/acme-prod", audience = "acme-prod" }
  oauth_client_id = "123-abc.apps.googleusercontent.com"
  secret_versions = { chat-key = "1", oauth-client-secret = "1" }
  domain          = "agent.acme.com"
  alert_emails    = ["oncall@acme.com"]
}

run "wrong_inputs_are_refused" {
  command = plan
  variables {
    # a path that leaves the archive
    mcp_servers = "../mcp.json"
    # any origin
    allowed_origins = ["*"]
    # an empty audience
    auth = { issuer = "https://securetoken.google.com/acme-prod", audience = "" }
    # a domain that no certificate is made for
    domain = "*.acme.com"
    # production that tells nobody
    alert_emails = []
    # production without protection
    deletion_protection = false
    # a prefix too long for identities
    prefix = "countersign-agent"
    # an example project
    project_id = "example-agent"
    # a region that is a zone
    region = "europe-west1-b"
    # an unknown way to the model
    model = { access = "proxy" }
    # an unknown kill switch
    side_effects = "maybe"
    # an audit that is gone before what it is about
    retention = { days = 90, audit_days = 90 }
    # a secret among the settings
    settings = { GEMINI_API_KEY = "AIza" }
    # a github app by its title
    github = { client_id = "Our App" }
    # an engine at a socket
    containers = { host = "unix:///var/run/docker.sock", images = ["alpine:3"] }
    # a webhook with a name that no subscription can have
    webhooks = { file = "serverless_function_source_code/webhooks.json", names = ["C R M"] }
    # mail from no address
    mail = { from = "Countersign <countersign@example.com>" }
    # traces go nowhere in the clear
    traces = { endpoint = "http://otel.example.com:4318" }
    # receipts without public keys
    receipts = { jwks = "{}" }
    # a private key
    decisions = { public_keys = "MC4CAQAwBQYDK2VwBCIEINTuctv5E1hK1bbY8fdp+K06/nwoy/HU++CXqI9EdVhC" }
    # passkeys without rules
    passkeys = { file = "" }
    # no version
    transparency_log = { version = 0 }
    # an oauth client by its title
    oauth_client_id = "Countersign"
    # an unknown send mode
    gmail_send_mode = "smtp"
    # an issuer of agents without https
    mcp_issuer = "http://login.example.com"
    # a release with blanks
    release = "v1 of today"
    # another language
    runtime = "nodejs22"
    # a throttle that lets nobody in
    requests_per_minute = 0
    # deleted files for a day
    files = { soft_delete_days = 1 }
    # an audit log of a week
    audit_log = { retention_days = 7 }
    # a way out of the archive
    actions = "../actions"
    # agents outside the archive
    agents = "../agents"
    # a pool by its name only
    worker_pool = "private"
    # a policy of Kubernetes
    binary_authorization = "projects/acme-prod/platforms/gke/policies/signed"
  }
  expect_failures = [
    var.actions,
    var.agents,
    var.alert_emails,
    var.allowed_origins,
    var.audit_log,
    var.auth,
    var.binary_authorization,
    var.containers,
    var.decisions,
    var.deletion_protection,
    var.domain,
    var.files,
    var.github,
    var.gmail_send_mode,
    var.mail,
    var.mcp_issuer,
    var.mcp_servers,
    var.model,
    var.oauth_client_id,
    var.passkeys,
    var.prefix,
    var.project_id,
    var.receipts,
    var.region,
    var.release,
    var.requests_per_minute,
    var.retention,
    var.runtime,
    var.settings,
    var.side_effects,
    var.traces,
    var.transparency_log,
    var.webhooks,
    var.worker_pool,
  ]
}

run "other_wrong_inputs_are_refused" {
  command = plan
  variables {
    # an origin without https
    allowed_origins = ["http://app.acme.com"]
    # an audience that is a list
    auth = { issuer = "https://securetoken.google.com/acme-prod", audience = "a,b" }
    # a domain with https
    domain = "https://agent.acme.com"
    # an alert to nowhere
    alert_emails = ["oncall"]
    # a github without tls
    github = { client_id = "Iv23liAbCdEf01234567", url = "http://github.example.com" }
    # metrics need a collector
    metrics = true
    # containers of no image
    containers = { host = "tcp://engine.example.com:2376", images = [] }
  }
  expect_failures = [
    var.alert_emails,
    var.allowed_origins,
    var.auth,
    var.containers,
    var.domain,
    var.github,
    var.metrics,
  ]
}

run "functions_that_do_not_fit_are_refused" {
  command = plan
  variables {
    functions = ["core"]
    # one is not deployed, one is unknown
    min_instances = { run = 1, chat = 1, reconcile = 1 }
    # tokens for /mcp, which is not deployed
    mcp_issuer = "https://login.example.com"
    # containers for plans, which are not deployed
    containers = { host = "tcp://engine.example.com:2376", images = ["alpine:3"] }
    # terminals, which are not deployed
    settings = { TERMINAL = "on" }
  }
  expect_failures = [
    var.containers,
    var.mcp_issuer,
    var.min_instances,
    var.settings,
  ]
}

run "unknown_functions_are_refused" {
  command = plan
  variables {
    functions = ["page", "planner"]
  }
  expect_failures = [
    var.functions,
  ]
}

run "and_others_are_refused" {
  command = plan
  variables {
    # an origin with a path
    allowed_origins = ["https://app.acme.com/"]
    # an issuer without https
    auth = { issuer = "securetoken.google.com/acme-prod", audience = "acme-prod" }
    # production without a domain
    domain = null
  }
  expect_failures = [
    var.allowed_origins,
    var.auth,
    var.domain,
  ]
}

# Others are judged by these, so each is wrong alone.

run "an_unknown_environment_is_refused" {
  command = plan
  variables {
    environment = "qa"
  }
  expect_failures = [var.environment]
}

run "an_unpinned_secret_is_refused" {
  command = plan
  variables {
    secret_versions = { chat-key = "1", oauth-client-secret = "latest" }
  }
  expect_failures = [var.secret_versions]
}

run "a_secret_without_a_version_is_refused" {
  command = plan
  variables {
    secret_versions = {}
  }
  expect_failures = [var.secret_versions]
}
