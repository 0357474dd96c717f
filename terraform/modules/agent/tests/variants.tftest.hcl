# The other ways to deploy it.

mock_provider "google" {
  mock_data "google_project" {
    defaults = { number = "123456789012" }
  }
}

variables {
  project_id      = "acme-dev"
  environment     = "dev"
  release         = "v1.2.3"
  archives        = "../../../dist"
  auth            = { issuer = "https://accounts.google.com", audience = "1-web.apps.googleusercontent.com", console = true }
  oauth_client_id = "123-abc.apps.googleusercontent.com"
  secret_versions = { chat-key = "1", oauth-client-secret = "1", gemini-api-key = "2" }
}

run "without_a_domain" {
  variables {
    deletion_protection = false
  }
  assert {
    condition     = length(google_compute_url_map.edge) == 0 && length(google_compute_backend_service.function) == 0 && output.address == null
    error_message = "Without a domain there is no load balancer."
  }
  assert {
    condition     = toset([for name, f in module.function : name if f.ingress == "ALLOW_ALL"]) == toset(keys(local.public))
    error_message = "Without a load balancer the public functions are open, and no other."
  }
  assert {
    condition     = output.url == "https://agent-web-123456789012.europe-west1.run.app" && output.oauth_redirect == "https://agent-connections-123456789012.europe-west1.run.app/api/agent/connections/google/callback"
    error_message = "The page and the way back from Google are at the addresses that Cloud Run gives."
  }
  assert {
    condition     = google_firestore_database.agent.deletion_policy == "DELETE" && google_firestore_database.agent.delete_protection_state == "DELETE_PROTECTION_DISABLED" && google_storage_bucket.source.force_destroy
    error_message = "Without protection a dev environment can be taken away."
  }
  assert {
    condition     = !contains(keys(google_monitoring_alert_policy.this), "unreachable") && length(google_monitoring_uptime_check_config.health) == 0
    error_message = "There is no host to watch."
  }
}

run "with_a_key_of_gemini" {
  variables {
    model = { access = "key" }
  }
  assert {
    condition     = local.secrets == toset(["chat-key", "gemini-api-key", "oauth-client-secret"])
    error_message = "The key is a secret with a pinned version."
  }
  assert {
    condition     = !contains(flatten([for parts in values(local.parts_of) : [for p in parts : [for r in try(p.roles, []) : r.role]]]), "roles/aiplatform.user")
    error_message = "With a key nobody needs a role for the model."
  }
}

run "with_mcp_servers" {
  variables {
    mcp_servers     = "serverless_function_source_code/mcp.json"
    secret_versions = { chat-key = "1", oauth-client-secret = "1", mcp-secrets = "2" }
  }
  assert {
    condition     = local.secrets == toset(["chat-key", "mcp-secrets", "oauth-client-secret"])
    error_message = "Whoever names servers pins what their file refers to."
  }
  assert {
    condition     = toset([for name, secrets in local.secrets_of : name if contains(keys(secrets), "MCP_SECRETS")]) == toset(["agui", "approvals-resolve", "mcp", "resume", "run", "runs", "stream", "ui"])
    error_message = "Only the functions that ask the servers have their secrets."
  }
}

run "with_declared_actions" {
  variables {
    actions         = "serverless_function_source_code/actions"
    secret_versions = { chat-key = "1", oauth-client-secret = "1", action-key = "3" }
  }
  assert {
    condition     = local.secrets == toset(["action-key", "chat-key", "oauth-client-secret"])
    error_message = "Whoever declares actions pins the key that their callers are signed with."
  }
}

run "with_a_github_app" {
  variables {
    github          = { client_id = "Iv23liAbCdEf01234567" }
    secret_versions = { chat-key = "1", oauth-client-secret = "1", github-client-secret = "1" }
  }
  assert {
    condition     = local.secrets == toset(["chat-key", "github-client-secret", "oauth-client-secret"]) && output.github_callback == "https://agent-connections-123456789012.europe-west1.run.app/api/agent/connections/github/callback"
    error_message = "Whoever has a GitHub App pins its client secret, and is told its callback address."
  }
  assert {
    condition     = toset([for name, secrets in local.secrets_of : name if contains(keys(secrets), "GITHUB_CLIENT_SECRET")]) == toset(["connections", "plans", "resume-plan"])
    error_message = "The functions that link or use GitHub accounts have the App's secret, and no other."
  }
}

run "with_events" {
  variables {
    events          = true
    secret_versions = { chat-key = "1", oauth-client-secret = "1" }
  }
  assert {
    condition     = local.environment.EVENTS_TOPIC == google_pubsub_topic.events.id && local.environment.CONSOLE_URL == local.page
    error_message = "What happens to runs is published, and leads to the console."
  }
}

run "with_devices" {
  variables {
    devices         = true
    secret_versions = { chat-key = "1", oauth-client-secret = "1", vapid-key = "1" }
  }
  assert {
    condition     = local.environment.EVENTS_TOPIC == google_pubsub_topic.events.id && keys(google_pubsub_subscription.webhook) == [""] && google_pubsub_subscription.webhook[""].name == "agent-people"
    error_message = "What happens to runs is published, and one subscription has people told of it."
  }
  assert {
    condition     = toset([for name, secrets in local.secrets_of : name if contains(keys(secrets), "VAPID_KEY")]) == toset(["allowlist", "notify"])
    error_message = "Who sends to devices has the key, and who tells browsers its public half."
  }
}

run "with_mail" {
  variables {
    mail            = { from = "countersign@example.com" }
    secret_versions = { chat-key = "1", oauth-client-secret = "1", smtp-url = "1" }
  }
  assert {
    condition     = local.environment.NOTIFY == "mail" && local.environment.NOTIFY_FROM == "countersign@example.com" && local.environment.EVENTS_TOPIC == null
    error_message = "People are mailed, and nothing is published for that."
  }
  assert {
    condition     = toset([for name, secrets in local.secrets_of : name if contains(keys(secrets), "SMTP_URL")]) == toset(["resume", "resume-plan", "resume-terminal"])
    error_message = "Who moves runs mails, and nobody else has the server's password."
  }
}

run "with_webhooks" {
  variables {
    webhooks        = { file = "serverless_function_source_code/webhooks.json", names = ["crm", "pager"] }
    secret_versions = { chat-key = "1", oauth-client-secret = "1", webhook-keys = "1" }
  }
  assert {
    condition     = local.environment.EVENTS_TOPIC == google_pubsub_topic.events.id && toset(keys(google_pubsub_subscription.webhook)) == toset(["/crm", "/pager"])
    error_message = "What happens to runs is published, and each webhook gets it by a subscription of its own."
  }
  assert {
    condition     = alltrue([for s in values(google_pubsub_subscription.webhook) : s.enable_message_ordering && s.expiration_policy[0].ttl == ""])
    error_message = "A webhook is told of a run in its order, and never forgotten."
  }
  assert {
    condition     = toset([for name, secrets in local.secrets_of : name if contains(keys(secrets), "WEBHOOK_KEYS")]) == toset(["notify"])
    error_message = "The function that sends to webhooks has their keys, and no other."
  }
}

run "with_traces" {
  variables {
    traces          = { endpoint = "https://otel.example.com", headers = true }
    secret_versions = { chat-key = "1", oauth-client-secret = "1", otlp-headers = "1" }
  }
  assert {
    condition     = toset([for name, secrets in local.secrets_of : name if contains(keys(secrets), "OTEL_EXPORTER_OTLP_HEADERS")]) == toset([for name, f in local.functions : name if contains(f.parts, "model")])
    error_message = "The functions that ask a model have the collector's headers, and no other."
  }
  assert {
    condition     = local.environment.OTEL_EXPORTER_OTLP_ENDPOINT == "https://otel.example.com" && local.environment.OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT == "false"
    error_message = "Traces have no content unless it is asked for."
  }
  assert {
    condition     = alltrue([for name, parts in local.parts_of : contains(local.functions[name].parts, "metrics") == anytrue([for p in parts : contains(try(p.environment, []), "OTEL_METRICS_EXPORTER")])])
    error_message = "There are no metrics unless they are asked for."
  }
}

run "with_metrics" {
  variables {
    traces          = { endpoint = "https://otel.example.com", headers = true }
    metrics         = true
    secret_versions = { chat-key = "1", oauth-client-secret = "1", otlp-headers = "1" }
  }
  assert {
    condition     = toset([for name, secrets in local.secrets_of : name if contains(keys(secrets), "OTEL_EXPORTER_OTLP_HEADERS")]) == toset([for name, f in local.functions : name if contains(f.parts, "metrics")])
    error_message = "The functions that change runs have the collector's headers, and no other."
  }
  assert {
    condition     = alltrue([for name, parts in local.parts_of : alltrue([for p in parts : !contains(try(p.environment, []), "OTEL_METRICS_EXPORTER")])])
    error_message = "No function is told to measure nothing."
  }
  assert {
    condition     = can(jsondecode(google_monitoring_dashboard.this["runs.json"].dashboard_json)) && alltrue([for alert in keys(local.measured) : one(google_monitoring_alert_policy.this[alert].conditions[0].condition_prometheus_query_language).evaluation_interval == "60s" && length(google_monitoring_alert_policy.this[alert].conditions) == 1])
    error_message = "What is measured is shown, and somebody is told within a minute of what is wrong with it."
  }
}

run "without_files" {
  variables {
    files = null
  }
  assert {
    condition     = length(google_storage_bucket.files) == 0 && alltrue([for name, parts in local.parts_of : alltrue([for p in parts : alltrue([for r in try(p.roles, []) : r.on != "files"])])])
    error_message = "Without files there is no bucket, and nobody has a role on it."
  }
}

run "with_a_key_for_decisions" {
  variables {
    decisions = {}
  }
  assert {
    condition     = google_kms_crypto_key.decisions[0].purpose == "ASYMMETRIC_SIGN" && google_kms_crypto_key.decisions[0].version_template[0].algorithm == "EC_SIGN_ED25519" && google_kms_crypto_key.decisions[0].destroy_scheduled_duration == "2592000s"
    error_message = "The key signs with Ed25519, and a destroyed version can be restored for 30 days."
  }
  assert {
    condition     = alltrue([for name, parts in local.parts_of : alltrue([for p in parts : !contains(try(p.environment, []), "DECISION_KMS_KEY")])]) && local.environment.DECISIONS == null
    error_message = "Nothing signs until the public keys are known."
  }
}

run "with_signed_decisions" {
  variables {
    decisions = { public_keys = "MCowBQYDK2VwAyEAGb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuE=", version = 2, mode = "sign" }
  }
  assert {
    condition     = toset([for name, parts in local.parts_of : name if anytrue([for p in parts : anytrue([for r in try(p.roles, []) : r.on == "decisions" && r.role == "roles/cloudkms.signerVerifier"])])]) == setintersection(toset(keys(local.functions)), toset(["approvals-resolve", "plans", "actions"]))
    error_message = "Only the functions that record users' decisions may sign them."
  }
  assert {
    condition     = toset([for name, parts in local.parts_of : name if anytrue([for p in parts : contains(try(p.environment, []), "DECISIONS_URL")])]) == setintersection(toset(keys(local.functions)), toset(["ui", "agui"])) && startswith(local.environment.DECISIONS_URL, "https://")
    error_message = "The functions of chat protocols send decisions to the function that signs them."
  }
  assert {
    condition     = alltrue([for name, parts in local.parts_of : anytrue([for p in parts : contains(try(p.environment, []), "DECISION_PUBLIC_KEYS")]) if anytrue([for p in parts : anytrue([for r in try(p.roles, []) : r.role == "roles/datastore.user"])])])
    error_message = "Every function that writes to the database knows the public keys."
  }
  assert {
    condition     = endswith(local.environment.DECISION_KMS_KEY, "/cryptoKeyVersions/2") && local.environment.DECISIONS == "sign"
    error_message = "The functions sign with the chosen version, in the chosen mode."
  }
}

run "with_a_log_of_the_audit" {
  variables {
    transparency_log = {}
  }
  assert {
    condition     = toset([for name, parts in local.parts_of : name if anytrue([for p in parts : anytrue([for r in try(p.roles, []) : contains(["log", "log-key", "checkpoint"], r.on)])])]) == toset(["sweep"])
    error_message = "Only the sweep writes the log and signs its checkpoints."
  }
  assert {
    condition     = google_storage_bucket.log[0].versioning[0].enabled && google_storage_bucket.log[0].public_access_prevention == "enforced" && google_kms_crypto_key.log[0].version_template[0].algorithm == "EC_SIGN_ED25519"
    error_message = "The bucket keeps each version of the checkpoint, and the key signs with Ed25519."
  }
  assert {
    condition     = endswith(local.environment.LOG_KMS_KEY, "/cryptoKeyVersions/1") && local.environment.LOG_BUCKET == google_storage_bucket.log[0].name && local.environment.LOG_PUBLIC_KEYS == null
    error_message = "The sweep knows the bucket and the version of the key."
  }
}

run "with_receipts" {
  variables {
    receipts        = { jwks = "{\"keys\":[{\"kty\":\"OKP\",\"x\":\"AA\"}]}" }
    secret_versions = { chat-key = "1", oauth-client-secret = "1", receipt-key = "2" }
  }
  assert {
    condition     = toset([for name, secrets in local.secrets_of : name if contains(keys(secrets), "RECEIPT_KEY")]) == toset(["runs"])
    error_message = "The function that hands out receipts has the key that signs them, and no other."
  }
}

run "with_receipts_of_cloud_kms" {
  variables {
    receipts = { jwks = "{\"keys\":[{\"kty\":\"OKP\",\"x\":\"AA\"}]}", kms_key_version = "projects/p/locations/l/keyRings/r/cryptoKeys/k/cryptoKeyVersions/1" }
  }
  assert {
    condition     = !contains(local.secrets, "receipt-key") && [for p in local.parts_of["runs"] : p.roles[0].role if try(p.roles[0].on, "") == "receipts"] == ["roles/cloudkms.signerVerifier"]
    error_message = "With Cloud KMS no key passes through a secret."
  }
}

run "with_containers" {
  variables {
    containers      = { host = "tcp://engine.example.com:2376", images = ["docker.io/library/golang:1.26", "alpine:3"], network = "builds", package_hosts = ["proxy.golang.org", "npm=https://npm.example.com"] }
    secret_versions = { chat-key = "1", oauth-client-secret = "1", docker-certs = "4" }
  }
  assert {
    condition     = toset([for name, secrets in local.secrets_of : name if contains(keys(secrets), "DOCKER_CERTS")]) == toset(["resume-plan"])
    error_message = "The function that moves plans has the engine's certificates, and no other."
  }
  assert {
    condition     = toset([for name, parts in local.parts_of : name if contains(flatten([for p in parts : try(p.environment, [])]), "DOCKER_IMAGES")]) == toset(["agui", "approvals-resolve", "plans", "resume-plan", "ui"])
    error_message = "The functions that judge what a plan does know what containers are made of."
  }
  assert {
    condition     = local.environment.DOCKER_IMAGES == "docker.io/library/golang:1.26,alpine:3" && local.environment.DOCKER_HOST == "tcp://engine.example.com:2376" && local.environment.DOCKER_NETWORK == "builds" && local.environment.DOCKER_PACKAGE_HOSTS == "proxy.golang.org,npm=https://npm.example.com"
    error_message = "Images have commas between them."
  }
}

run "with_declared_agents" {
  variables {
    agents = "serverless_function_source_code/agents"
  }
  assert {
    condition     = toset([for name, parts in local.parts_of : name if contains(flatten([for p in parts : try(p.environment, [])]), "AGENTS")]) == toset(["actions", "agui", "approvals-resolve", "chat", "chat-results", "gemini-agent", "mcp", "plans", "resume", "resume-plan", "resume-terminal", "run", "runs", "stream", "sweep", "ui"])
    error_message = "The functions that begin runs, answer pages, carry out an action by its name, move, decide, list and end runs know the agents."
  }
}

run "with_a_key_for_passkeys" {
  variables {
    decisions = { public_keys = "MCowBQYDK2VwAyEAGb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuE=" }
    passkeys  = { file = "strong.yaml" }
  }
  assert {
    condition     = google_kms_crypto_key.enrolment[0].purpose == "ASYMMETRIC_SIGN" && local.environment.STRONG_APPROVAL == null
    error_message = "No decision needs a passkey until the public keys are known."
  }
}

run "with_passkeys" {
  variables {
    functions = ["all"]
    decisions = { public_keys = "MCowBQYDK2VwAyEAGb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuE=" }
    passkeys  = { file = "strong.yaml", public_keys = "MCowBQYDK2VwAyEAGb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuE=", version = 3 }
  }
  assert {
    condition     = toset([for name, parts in local.parts_of : name if anytrue([for p in parts : anytrue([for r in try(p.roles, []) : r.on == "enrolment"])])]) == toset(["passkeys"])
    error_message = "Only the function passkeys may sign passkeys."
  }
  assert {
    condition     = alltrue([for name, parts in local.parts_of : anytrue([for p in parts : contains(try(p.environment, []), "STRONG_APPROVAL") && contains(try(p.environment, []), "ENROLMENT_PUBLIC_KEYS")]) if anytrue([for p in parts : anytrue([for r in try(p.roles, []) : r.role == "roles/datastore.user"])])])
    error_message = "Every function that writes to the database knows the rules and the public keys."
  }
  assert {
    condition     = endswith(local.environment.ENROLMENT_KMS_KEY, "/enrolment/cryptoKeyVersions/3") || endswith(local.environment.ENROLMENT_KMS_KEY, "/cryptoKeyVersions/3")
    error_message = "The function signs with the chosen version."
  }
}
