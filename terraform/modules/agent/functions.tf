# The functions of infra/functions.json. The parts of a function determine its settings, secrets and roles.

data "google_project" "this" {
  project_id = var.project_id
}

locals {
  infra = "${path.module}/../../../infra"
  list  = jsondecode(file("${local.infra}/functions.json"))

  # The core, the chosen functions, and what these need: infra.List.Select selects in the same way. Notifications bring
  # the functions that send them and that their links lead to.
  names     = [for f in local.list.functions : f.name]
  chosen    = flatten([for name in concat(["core"], var.functions) : name == "all" ? local.names : lookup(local.list.profiles, name, [name])])
  selected  = concat(local.chosen, flatten([for f in local.list.functions : try(f.needs, []) if contains(local.chosen, f.name)]))
  notifying = concat(length(local.tellings) > 0 ? ["notify"] : [], var.devices ? ["allowlist"] : [], local.told || var.mail != null ? ["web"] : [])
  functions = { for f in local.list.functions : f.name => f if contains(concat(local.selected, local.notifying), f.name) }
  console   = contains(keys(local.functions), "web")
  public    = { for name, f in local.functions : name => f if f.callers == "everyone" }
  labels    = merge(var.labels, { app = var.prefix, env = var.environment })
  auth      = var.auth != null ? var.auth : { issuer = "https://securetoken.google.com/${var.project_id}", audience = var.project_id, console = false, allowed_domains = [] }
  services  = "${var.prefix}-(${join("|", keys(local.functions))})"

  # If the model is called with a key, its part needs the key and not the role. Without declared actions, no action key is needed.
  instead    = merge(var.model.access == "key" ? { model = "model-key" } : {}, var.actions == null ? { actions = "no-actions" } : {}, var.agents == null ? { agents = "no-agents" } : {}, var.mcp_servers == null ? { servers = "no-servers" } : {}, var.github == null ? { github = "no-github" } : {}, var.containers == null ? { containers = "no-containers", engine = "no-engine" } : {}, var.webhooks == null ? { webhooks = "no-webhooks" } : {}, var.devices ? {} : { devices = "no-devices" }, var.mail == null ? { mail = "no-mail" } : {}, var.traces == null ? { traces = "no-traces" } : var.traces.headers ? { traces = "traces-key" } : {}, !var.metrics ? { metrics = "no-metrics" } : try(var.traces.headers, false) ? { metrics = "metrics-key" } : {}, var.receipts == null ? { receipts = "no-receipts" } : var.receipts.kms_key_version != "" ? { receipts = "receipts-kms" } : {}, local.signed ? {} : { decisions = "no-decisions", forwards = "no-forwards" }, local.strong ? {} : { enrolment = "no-enrolment" }, var.files == null ? { files = "no-files", uploads = "no-uploads", objects = "no-objects" } : {}, var.transparency_log == null ? { log = "no-log" } : {})
  signed     = try(var.decisions.public_keys, "") != ""
  strong     = local.signed && try(var.passkeys.public_keys, "") != ""
  parts_of   = { for name, f in local.functions : name => [for part in f.parts : local.list.parts[lookup(local.instead, part, part)]] }
  secrets_of = { for name, parts in local.parts_of : name => merge([for p in parts : try(p.secrets, {})]...) }
  secrets    = toset(flatten([for s in values(local.secrets_of) : values(s)]))

  # The addresses of the console and the API, and Google's redirect address. Without a domain these are the
  # addresses that Cloud Run gives a service by its name. Without a domain and a console, there is no page.
  each_address = "https://${var.prefix}-{function}-${data.google_project.this.number}.${var.region}.run.app"
  page         = var.domain != null ? "https://${var.domain}" : local.console ? replace(local.each_address, "{function}", "web") : null
  public_url   = var.domain == null ? replace(local.each_address, "{function}", "connections") : "https://${var.domain}"

  environment = {
    WEB_CLIENT_ID                                      = local.auth.audience
    WEB_API_URL                                        = local.each_address
    WEB_FUNCTIONS                                      = length(local.functions) < length(local.names) ? join(",", sort(keys(local.public))) : null
    AUTH_ISSUER                                        = local.auth.issuer
    AUTH_AUDIENCE                                      = local.auth.audience
    AUTH_ALLOWED_DOMAINS                               = join(",", local.auth.allowed_domains)
    ALLOWED_ORIGINS                                    = join(",", distinct(concat(local.console ? [local.page] : [], var.allowed_origins)))
    PUBLIC_URL                                         = local.public_url
    MCP_URL                                            = var.domain == null ? "${replace(local.each_address, "{function}", "mcp")}/mcp" : null
    MCP_ISSUER                                         = var.mcp_issuer
    PUSH_VERIFIED_BY                                   = "platform" # Cloud Run rejects all other callers, and removes the signature that it has checked
    GOOGLE_CLOUD_PROJECT                               = var.project_id
    FIRESTORE_DATABASE                                 = google_firestore_database.agent.name
    RESUME_TOPIC                                       = google_pubsub_topic.resume.id
    SWEEP_TOPIC                                        = google_pubsub_topic.sweep.id
    EVENTS_TOPIC                                       = local.told ? google_pubsub_topic.events.id : null
    WEBHOOKS                                           = try(var.webhooks.file, null)
    CONSOLE_URL                                        = local.console ? local.page : null
    NOTIFY                                             = var.mail == null ? null : "mail"
    NOTIFY_FROM                                        = try(var.mail.from, null)
    OTEL_EXPORTER_OTLP_ENDPOINT                        = try(var.traces.endpoint, null)
    OTEL_METRICS_EXPORTER                              = "none" # traces are on and metrics off
    OTEL_RESOURCE_ATTRIBUTES                           = "cloud.provider=gcp,cloud.platform=gcp_cloud_run,cloud.account.id=${var.project_id},cloud.region=${var.region},deployment.environment.name=${var.environment}"
    OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT = try(tostring(var.traces.content), null)
    GEMINI_MODEL                                       = var.model.name
    GEMINI_FALLBACK_MODELS                             = length(var.model.fallbacks) > 0 ? join(",", var.model.fallbacks) : null
    GEMINI_MODELS                                      = length(var.model.choices) > 0 ? join(",", var.model.choices) : null
    VERTEX_AI_PROJECT_ID                               = var.project_id
    VERTEX_AI_LOCATION                                 = var.model.location
    ACTIONS                                            = var.actions
    AGENTS                                             = var.agents
    MCP_SERVERS                                        = var.mcp_servers
    GMAIL_SEND_MODE                                    = var.gmail_send_mode
    GMAIL_SEARCH                                       = var.gmail_search ? "on" : "off"
    GMAIL_MODIFY                                       = var.gmail_modify ? "on" : "off"
    GOOGLE_OAUTH_CLIENT_ID                             = var.oauth_client_id
    GITHUB_CLIENT_ID                                   = try(var.github.client_id, null)
    GITHUB_URL                                         = try(var.github.url, null)
    GITHUB_API_URL                                     = try(var.github.api_url, null)
    DOCKER_HOST                                        = try(var.containers.host, null)
    DOCKER_IMAGES                                      = try(join(",", var.containers.images), null)
    DOCKER_NETWORK                                     = try(var.containers.network, null)
    DOCKER_PACKAGE_HOSTS                               = try(join(",", var.containers.package_hosts), null)
    DECISIONS                                          = local.signed ? var.decisions.mode : null
    DECISION_PUBLIC_KEYS                               = local.signed ? var.decisions.public_keys : null
    DECISION_KMS_KEY                                   = local.signed ? "${google_kms_crypto_key.decisions[0].id}/cryptoKeyVersions/${var.decisions.version}" : null
    DECISIONS_URL                                      = local.signed ? (var.domain == null ? replace(local.each_address, "{function}", "approvals-resolve") : "https://${var.domain}") : null
    STRONG_APPROVAL                                    = local.strong ? var.passkeys.file : null
    ENROLMENT_PUBLIC_KEYS                              = local.strong ? var.passkeys.public_keys : null
    ENROLMENT_KMS_KEY                                  = local.strong ? "${google_kms_crypto_key.enrolment[0].id}/cryptoKeyVersions/${var.passkeys.version}" : null
    RECEIPT_JWKS                                       = try(var.receipts.jwks, null)
    RECEIPT_KMS_KEY                                    = try(var.receipts.kms_key_version, null)
    TOKEN_KMS_KEY                                      = google_kms_crypto_key.tokens.id
    FILES_BUCKET                                       = local.files_bucket
    LOG_BUCKET                                         = local.log_bucket
    LOG_KMS_KEY                                        = try("${google_kms_crypto_key.log[0].id}/cryptoKeyVersions/${var.transparency_log.version}", null)
    LOG_PUBLIC_KEYS                                    = try(var.transparency_log.public_keys, "") != "" ? var.transparency_log.public_keys : null
  }
  settings = merge(
    var.settings,
    { SIDE_EFFECTS = var.side_effects },
    var.retention.days > 0 ? { RETENTION = tostring(var.retention.days) } : {},
    var.retention.audit_days > 0 ? { AUDIT_RETENTION = tostring(var.retention.audit_days) } : {},
  )
  own = {
    for name, f in local.functions : name => merge({
      FUNCTION_TIMEOUT     = "${f.timeoutSeconds}s"
      FUNCTION_CONCURRENCY = tostring(f.concurrency)
      PUSH_SUBSCRIPTION    = f.callers == "events" ? null : "projects/${var.project_id}/subscriptions/${f.callers == "scheduler" ? local.sweep_name : lookup(local.resume_names, name, local.resume_names["resume"])}"
      PUSH_SERVICE_ACCOUNT = f.callers == "everyone" ? null : local.callers[f.callers].email
    }, name == "mcp" ? { PUBLIC_URL = local.page } : {}) # it links to the console
  }
  unset   = concat(local.auth.console ? [] : ["WEB_CLIENT_ID"], var.domain == null ? [] : ["WEB_API_URL"])
  callers = { queue = google_service_account.push, events = google_service_account.push, scheduler = google_service_account.scheduler }
}

module "function" {
  source   = "../function"
  for_each = local.functions

  project_id            = var.project_id
  region                = var.region
  prefix                = var.prefix
  name                  = each.key
  entry_point           = each.value.entryPoint
  runtime               = var.runtime
  archive               = "${var.archives}/${each.key}.zip"
  release               = var.release
  source_bucket         = google_storage_bucket.source.name
  docker_repository     = google_artifact_registry_repository.functions.id
  build_service_account = local.build
  cpu                   = each.value.cpu
  memory                = each.value.memory
  timeout_seconds       = each.value.timeoutSeconds
  concurrency           = each.value.concurrency
  min_instances         = lookup(var.min_instances, each.key, each.value.minInstances)
  hold_traffic          = var.hold_traffic
  max_instances         = each.value.maxInstances
  vpc_connector         = var.vpc_connector
  worker_pool           = var.worker_pool
  binary_authorization  = var.binary_authorization

  # Only through the load balancer, if it exists.
  ingress = each.value.callers != "everyone" ? "ALLOW_INTERNAL_ONLY" : var.domain == null ? "ALLOW_ALL" : "ALLOW_INTERNAL_AND_GCLB"
  invoker = each.value.callers == "everyone" ? "allUsers" : local.callers[each.value.callers].member

  environment = merge(
    length(each.value.parts) > 0 ? local.settings : {},
    { for name in distinct(flatten([for p in local.parts_of[each.key] : try(p.environment, [])])) : name => merge(local.environment, local.own[each.key])[name] if !contains(local.unset, name) },
  )
  secrets = {
    for variable, secret in local.secrets_of[each.key] :
    variable => { secret = "${var.prefix}-${secret}", version = lookup(var.secret_versions, secret, "") }
  }
  roles = distinct(flatten([for p in local.parts_of[each.key] : try(p.roles, [])]))
  on = {
    database  = google_firestore_database.agent.id
    topic     = google_pubsub_topic.resume.name
    sweeps    = google_pubsub_topic.sweep.name
    events    = google_pubsub_topic.events.name
    tokens    = google_kms_crypto_key.tokens.id
    receipts  = try(split("/cryptoKeyVersions/", var.receipts.kms_key_version)[0], "")
    decisions = try(google_kms_crypto_key.decisions[0].id, "")
    enrolment = try(google_kms_crypto_key.enrolment[0].id, "")
    files     = local.files_bucket == null ? "" : local.files_bucket
    log       = local.log_bucket == null ? "" : local.log_bucket
    log_key   = try(google_kms_crypto_key.log[0].id, "")
  }
  labels = local.labels

  depends_on = [google_artifact_registry_repository_iam_member.build]
}
