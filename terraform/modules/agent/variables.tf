variable "project_id" {
  type        = string
  description = "The project of this environment, prepared by terraform/bootstrap."
  validation {
    condition     = can(regex("^[a-z][a-z0-9-]{4,28}[a-z0-9]$", var.project_id)) && !startswith(var.project_id, "example-")
    error_message = "project_id is ${var.project_id}; it must be the ID of your Google Cloud project: 6 to 30 lower-case letters, digits and hyphens."
  }
}

variable "environment" {
  type        = string
  description = "The name of the environment: dev, stage or prod."
  validation {
    condition     = contains(["dev", "stage", "prod"], var.environment)
    error_message = "environment must be dev, stage or prod."
  }
}

variable "region" {
  type        = string
  default     = "europe-west1"
  nullable    = false
  description = "The region of the functions, the queue and the keys."
  validation {
    condition     = can(regex("^[a-z]+-[a-z]+[0-9]$", var.region))
    error_message = "region must be a region of Google Cloud, such as europe-west1."
  }
}

variable "firestore_location" {
  type        = string
  default     = "eur3"
  nullable    = false
  description = "The location of the database, near the region. It can never be changed."
}

variable "prefix" {
  type        = string
  default     = "agent"
  nullable    = false
  description = "The prefix of every name in this deployment."
  validation {
    condition     = can(regex("^[a-z][a-z0-9-]{2,11}$", var.prefix)) && !endswith(var.prefix, "-")
    error_message = "prefix must be 3 to 12 lower-case letters, digits and hyphens: with a function's name it becomes the name of an identity, which has at most 30 characters."
  }
}

variable "runtime" {
  type        = string
  default     = "go126"
  nullable    = false
  description = "The Go runtime of Cloud Functions. Its minor version must be that of go.mod."
  validation {
    condition     = can(regex("^go1[0-9]{2}$", var.runtime))
    error_message = "runtime is a Go runtime of Cloud Functions, such as go126."
  }
}

variable "archives" {
  type        = string
  description = "The folder with one zip for each function, made by: go run ./scripts/package -out dist"
}

variable "release" {
  type        = string
  default     = "untagged"
  description = "The release that is deployed, such as a tag."
  validation {
    condition     = can(regex("^[A-Za-z0-9][A-Za-z0-9._-]{0,49}$", var.release))
    error_message = "release is at most 50 letters, digits, dots, hyphens and underscores."
  }
}

variable "domain" {
  type        = string
  default     = null
  description = "The one host of the web app and the API. Null: no load balancer, each function at its own address."
  validation {
    condition     = var.domain == null ? true : can(regex("^([a-z0-9]([a-z0-9-]*[a-z0-9])?\\.)+[a-z]{2,}$", var.domain))
    error_message = "domain is one host such as agent.example.com, without https:// and without *: its certificate is made for that host, and there is none for a pattern."
  }
  validation {
    condition     = var.domain != null || var.environment == "dev"
    error_message = "Set domain: without one there is no load balancer, no throttle and no certificate of your own, which is for dev only."
  }
}

variable "auth" {
  type        = object({ issuer = string, audience = string, console = optional(bool, false), allowed_domains = optional(list(string), []) })
  description = "Whose ID tokens are accepted, such as https://securetoken.google.com/PROJECT with the audience PROJECT; and whether the console signs users in there itself, as the public client that the audience names. Where the issuer lets anybody in, allowed_domains says whose verified e-mail addresses users must have."
  validation {
    condition     = can(regex("^https://[^*?#\\s]+$", var.auth.issuer))
    error_message = "auth.issuer is the https address of who signs your users' ID tokens, such as https://securetoken.google.com/PROJECT."
  }
  validation {
    condition     = can(regex("^[^\\s*,;]+$", var.auth.audience))
    error_message = "auth.audience must be the one exact audience of your users' ID tokens; with an empty one any app's users could sign in."
  }
  validation {
    condition     = alltrue([for d in var.auth.allowed_domains : can(regex("^([a-z0-9]([a-z0-9-]*[a-z0-9])?\\.)+[a-z0-9]([a-z0-9-]*[a-z0-9])?$", d))])
    error_message = "auth.allowed_domains must be exact domains of e-mail addresses in lower case, such as example.com, without * or @."
  }
}

variable "allowed_origins" {
  type        = list(string)
  default     = []
  nullable    = false
  description = "The exact origins of web apps on other hosts that can call the API."
  validation {
    condition     = alltrue([for o in var.allowed_origins : can(regex("^https://[a-z0-9.-]+(:[0-9]+)?$", o))])
    error_message = "allowed_origins must be exact, such as https://app.example.com, without *, path or trailing slash. A pattern would let any site act for a signed-in user."
  }
}

variable "model" {
  type = object({
    name     = optional(string, "gemini-2.5-flash")
    access   = optional(string, "vertex")
    location = optional(string, "global")
  })
  default     = {}
  nullable    = false
  description = "The model, and how to call it: with the functions' identities (vertex), or with the secret gemini-api-key (key)."
  validation {
    condition     = contains(["vertex", "key"], var.model.access)
    error_message = "model.access must be vertex (no secret) or key (the secret gemini-api-key)."
  }
}

variable "oauth_client_id" {
  type        = string
  description = "The OAuth client that links users' Google accounts."
  validation {
    condition     = can(regex("^[a-z0-9-]+\\.apps\\.googleusercontent\\.com$", var.oauth_client_id))
    error_message = "oauth_client_id must look like 123-abc.apps.googleusercontent.com: create a web client in the console, with the redirect address that the README names."
  }
}

variable "github" {
  type        = object({ client_id = string, url = optional(string, "https://github.com"), api_url = optional(string, "https://api.github.com") })
  default     = null
  description = "The GitHub App that links users' GitHub accounts. Its client secret is the secret github-client-secret. Null: users cannot link GitHub accounts."
  validation {
    condition     = var.github == null ? true : can(regex("^[A-Za-z0-9._-]{8,64}$", var.github.client_id))
    error_message = "github.client_id must look like Iv23liAbCdEf01234567. It is on the GitHub App's page, and is neither the App's name nor its number."
  }
  validation {
    condition     = var.github == null ? true : alltrue([for a in [var.github.url, var.github.api_url] : can(regex("^https://[a-z0-9.-]+(:[0-9]+)?(/[a-z0-9/]*[a-z0-9])?$", a))])
    error_message = "github.url and github.api_url must be https addresses without a trailing slash, such as https://github.example.com and https://github.example.com/api/v3."
  }
}

variable "containers" {
  type        = object({ host = string, images = list(string), network = optional(string, "") })
  default     = null
  description = "The engine on another machine that runs containers for plans. Its certificates are the secret docker-certs. Null: no containers."
  validation {
    condition     = var.containers == null ? true : can(regex("^tcp://[a-z0-9.-]+:[0-9]+$", var.containers.host))
    error_message = "containers.host must be the engine's address, such as tcp://engine.example.com:2376: functions have no socket."
  }
  validation {
    condition     = var.containers == null ? true : length(var.containers.images) > 0 && length(var.containers.images) <= 20 && alltrue([for i in var.containers.images : can(regex("^[a-z0-9][a-z0-9._/:-]*(@sha256:[0-9a-f]{64})?$", i))])
    error_message = "containers.images must be 1 to 20 names of images that the engine has, such as docker.io/library/golang:1.26."
  }
}

variable "traces" {
  type        = object({ endpoint = string, headers = optional(bool, false), content = optional(bool, false) })
  default     = null
  description = "The collector of OpenTelemetry traces by OTLP over HTTP, such as https://otel.example.com; whether it needs headers, which the secret otlp-headers has in the form of OTEL_EXPORTER_OTLP_HEADERS; and whether traces contain messages, arguments and results. Null: no traces."
  validation {
    condition     = var.traces == null ? true : can(regex("^https://[^/?#]+(/[^?#]*)?$", var.traces.endpoint))
    error_message = "traces.endpoint must be an https address without a query."
  }
}

variable "metrics" {
  type        = bool
  default     = false
  description = "Whether to send the metrics of runs to the collector of traces."
  validation {
    condition     = !var.metrics || var.traces != null
    error_message = "metrics needs traces, whose collector receives the metrics too. To send only metrics, add settings = { OTEL_TRACES_SAMPLER = \"always_off\" }."
  }
}

variable "receipts" {
  type        = object({ jwks = string, kms_key_version = optional(string, "") })
  default     = null
  description = "The public keys that verify receipts (ops receipt-keys), and the version of the Cloud KMS key that signs them; without that version, the secret receipt-key signs. Null: no receipts."
  validation {
    condition     = var.receipts == null ? true : can(jsondecode(var.receipts.jwks).keys[0].x)
    error_message = "receipts.jwks must be a JWK Set in JSON, as go run ./scripts/ops receipt-keys prints it."
  }
  validation {
    condition     = var.receipts == null ? true : can(regex("^(projects/[^/]+/locations/[^/]+/keyRings/[^/]+/cryptoKeys/[^/]+/cryptoKeyVersions/[0-9]+)?$", var.receipts.kms_key_version))
    error_message = "receipts.kms_key_version must be projects/P/locations/L/keyRings/R/cryptoKeys/K/cryptoKeyVersions/V."
  }
}

variable "gmail_send_mode" {
  type        = string
  default     = "draft"
  nullable    = false
  description = "draft sends each mail exactly once; direct needs fewer permissions, but users have to review unknown outcomes."
  validation {
    condition     = contains(["draft", "direct"], var.gmail_send_mode)
    error_message = "gmail_send_mode must be draft or direct."
  }
}

variable "mcp_issuer" {
  description = "The OAuth issuer of the access tokens that MCP clients send to /mcp. Its subjects are the users, and a token is valid only for the address of /mcp. Without an issuer, MCP clients use tokens that users create in the console."
  type        = string
  default     = null

  validation {
    condition     = var.mcp_issuer == null || can(regex("^https://[^?#]+$", var.mcp_issuer))
    error_message = "mcp_issuer must be an https address without a query."
  }
}

variable "events" {
  type        = bool
  default     = false
  nullable    = false
  description = "Whether to publish events about runs, without content, to the topic of the output events: a pending approval, a decision, an end. Each wait and each end of a run then costs one more publish and one more commit."
}

variable "webhooks" {
  type        = object({ file = string, names = list(string) })
  default     = null
  description = "Your endpoints that receive events about runs: the path of the file that scripts/package -with added to the archives, and the endpoints' names in it. Their keys are the secret webhook-keys. Null: no webhooks."
  validation {
    condition     = var.webhooks == null ? true : length(var.webhooks.names) >= 1 && length(var.webhooks.names) <= 20 && alltrue([for n in var.webhooks.names : can(regex("^[a-z]([a-z0-9-]{0,30}[a-z0-9])?$", n))])
    error_message = "webhooks.names must be the 1 to 20 names in the file: lower-case letters, digits and hyphens."
  }
}

variable "devices" {
  type        = bool
  default     = false
  nullable    = false
  description = "Whether users can turn on notifications about pending approvals, without content, in their browsers and phones. The secret vapid-key identifies this server to push services."
}

variable "mail" {
  type        = object({ from = string })
  default     = null
  description = "The sender's address of e-mails about approvals older than five minutes, sent without content and at most once an hour. The secret smtp-url names the SMTP server: smtps://USER:PASSWORD@HOST. Null: no e-mails."
  validation {
    condition     = var.mail == null ? true : can(regex("^[^@ ]+@[a-z0-9.-]+$", var.mail.from))
    error_message = "mail.from must be one e-mail address, such as countersign@example.com."
  }
}

variable "gmail_search" {
  type        = bool
  default     = false
  nullable    = false
  description = "Whether agents can search and read their users' mail. The first use asks the user for gmail.readonly, a restricted scope."
}

variable "secret_versions" {
  type        = map(string)
  default     = {}
  description = "The pinned version of each secret, such as { oauth-client-secret = \"1\", chat-key = \"1\" }. Values never pass through Terraform."
  validation {
    condition     = alltrue([for v in values(var.secret_versions) : can(regex("^[1-9][0-9]*$", v))])
    error_message = "Pin each secret's version by number: latest would change the deployment without a plan. See: gcloud secrets versions list NAME"
  }
  validation {
    condition     = alltrue([for s in local.secrets : contains(keys(var.secret_versions), s)])
    error_message = "No version is pinned for ${join(", ", setsubtract(local.secrets, keys(var.secret_versions)))}. Add the value with: gcloud secrets versions add ${var.prefix}-NAME --data-file=- and set secret_versions = { NAME = \"1\" }."
  }
}

variable "actions" {
  type        = string
  default     = null
  description = "The path of the folder with your declared actions in the deployed function; null for none."
  validation {
    condition     = var.actions == null ? true : can(regex("^[A-Za-z0-9_./-]+$", var.actions)) && !strcontains(var.actions, "..")
    error_message = "actions must be the path of a folder without .., such as serverless_function_source_code/actions."
  }
}

variable "agents" {
  type        = string
  default     = null
  description = "The path of the folder with your declared agents in the deployed function; null for none."
  validation {
    condition     = var.agents == null ? true : can(regex("^[A-Za-z0-9_./-]+$", var.agents)) && !strcontains(var.agents, "..")
    error_message = "agents must be the path of a folder without .., such as serverless_function_source_code/agents."
  }
}

variable "mcp_servers" {
  type        = string
  default     = null
  description = "The path of the file with your MCP servers in the deployed function. The secret mcp-secrets has the values that the file refers to as $${NAME}. Null for none."
  validation {
    condition     = var.mcp_servers == null ? true : can(regex("^[A-Za-z0-9_./-]+\\.json$", var.mcp_servers)) && !strcontains(var.mcp_servers, "..")
    error_message = "mcp_servers must be the path of a file without .., such as serverless_function_source_code/mcp.json."
  }
}

variable "side_effects" {
  type        = string
  default     = "on"
  nullable    = false
  description = "The kill switch: on; ask (each side effect waits for approval, even if the user always allows it); off (no side effects)."
  validation {
    condition     = contains(["on", "ask", "off"], var.side_effects)
    error_message = "side_effects must be on, ask or off."
  }
}

variable "retention" {
  type        = object({ days = optional(number, 0), audit_days = optional(number, 0) })
  default     = {}
  nullable    = false
  description = "Days after its last use until a conversation is deleted, and days until an audit entry is deleted; 0: never."
  validation {
    condition     = var.retention.days >= 0 && floor(var.retention.days) == var.retention.days && floor(var.retention.audit_days) == var.retention.audit_days && (var.retention.audit_days == 0 || var.retention.days > 0 && var.retention.audit_days > var.retention.days)
    error_message = "retention must be in whole days, with more days for the audit than for conversations."
  }
}

variable "settings" {
  type        = map(string)
  default     = {}
  nullable    = false
  description = "Further variables from shared/config/README.md for all functions, such as { MAX_MODEL_CALLS = \"5\" }."
  validation {
    condition = alltrue([for name in keys(var.settings) : contains([
      "APPROVAL_TTL", "CHAT_MAX_MODEL_CALLS", "HOLD", "LOG_LEVEL", "MAX_APPROVALS_PER_DAY", "MAX_COMMANDS_PER_DAY", "MAX_MODEL_CALLS",
      "MAX_MODEL_CALLS_PER_DAY", "MAX_OPEN_APPROVALS", "MAX_RUNS_PER_MINUTE", "MAX_TOKENS_PER_DAY", "PERSONA", "PLAN_MAX_ASKS", "PLAN_MAX_DEADLINE", "PLAN_MAX_MODEL_CALLS", "POLICY_ALWAYS_ASK", "POLICY_DENIED", "POLICY_PERMITTED", "REJECT_OUTCOME", "RUN_DEADLINE",
      "OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE", "OTEL_METRIC_EXPORT_INTERVAL", "OTEL_SERVICE_NAME", "OTEL_TRACES_SAMPLER", "OTEL_TRACES_SAMPLER_ARG", "TERMINAL", "TERMINAL_DENY", "TERMINAL_HOSTS", "WEB_TOOLS",
    ], name)])
    error_message = "settings accepts the limits, the policy, PERSONA, LOG_LEVEL, and the settings of terminals, the web, traces and metrics. Everything else has a separate variable. Secrets do not belong here."
  }
}

variable "min_instances" {
  type        = map(number)
  default     = {}
  description = "The number of warm instances by function, such as { run = 1 }. Warm instances cost money."
  validation {
    condition     = alltrue([for name in keys(var.min_instances) : contains(keys(local.functions), name)])
    error_message = "min_instances names a function that is not in infra/functions.json."
  }
}

variable "vpc_connector" {
  type        = string
  default     = null
  description = "A Serverless VPC Access connector, which gives outgoing requests a fixed address; null for none."
}

variable "requests_per_minute" {
  type        = number
  default     = 300
  nullable    = false
  description = "The limit of requests a minute from one address through the load balancer."
  validation {
    condition     = var.requests_per_minute >= 10 && var.requests_per_minute <= 100000
    error_message = "requests_per_minute must be 10 to 100000."
  }
}

variable "alert_emails" {
  type        = set(string)
  default     = []
  description = "The e-mail addresses that receive alerts."
  validation {
    condition     = alltrue([for a in var.alert_emails : can(regex("^[^@\\s]+@[^@\\s]+\\.[^@\\s]+$", a))])
    error_message = "alert_emails must be e-mail addresses."
  }
  validation {
    condition     = length(var.alert_emails) > 0 || var.environment == "dev"
    error_message = "Set alert_emails, or nobody gets the alerts."
  }
}

variable "audit_log" {
  type = object({
    retention_days = optional(number, 400)
    locked         = optional(bool, false)
  })
  default     = {}
  nullable    = false
  description = "How long the audit's logs are kept. A lock can never be removed, not even by deleting the project's contents."
  validation {
    condition     = var.audit_log.retention_days >= 30 && var.audit_log.retention_days <= 3650
    error_message = "audit_log.retention_days must be 30 to 3650."
  }
}

variable "deletion_protection" {
  type        = bool
  default     = true
  description = "Whether Google refuses to delete the database, and Terraform to destroy it."
  validation {
    condition     = var.deletion_protection || var.environment == "dev"
    error_message = "deletion_protection can be off only in dev: elsewhere the database holds the record of users' approvals."
  }
}

variable "labels" {
  type        = map(string)
  default     = {}
  nullable    = false
  description = "Additional labels for all resources."
}
