# The prod environment: a project of its own, a state of its own. What users have. What is yours goes into terraform.tfvars.

terraform {
  backend "gcs" {
    prefix = "agent/prod" # the bucket: terraform init -backend-config=bucket=PROJECT-tfstate
  }
}

provider "google" {
  user_project_override = true
  billing_project       = var.project_id
  default_labels        = { managed-by = "terraform" }
}

variable "project_id" {
  type        = string
  description = "The project that bootstrap has prepared."
}

variable "release" {
  type        = string
  description = "The release that is deployed: git describe --tags --always"
}

variable "oauth_client_id" {
  type        = string
  description = "The OAuth client with which users link their Google accounts."
}

variable "domain" {
  type        = string
  description = "The host of the page and the API."
}

variable "alert_emails" {
  type        = set(string)
  description = "Who is told."
}

variable "github" {
  type        = object({ client_id = string, url = optional(string, "https://github.com"), api_url = optional(string, "https://api.github.com") })
  default     = null
  description = "The GitHub App with which users link their GitHub accounts. Null: none can be linked."
}

variable "containers" {
  type        = object({ host = string, images = list(string), network = optional(string, "") })
  default     = null
  description = "The engine that runs containers for plans, such as { host = \"tcp://engine.example.com:2376\", images = [\"docker.io/library/golang:1.26\"] }."
}

variable "events" {
  type        = bool
  default     = false
  description = "Whether what happens to runs is published, without content, to a topic of its own."
}

variable "webhooks" {
  type        = object({ file = string, names = list(string) })
  default     = null
  description = "Your endpoints that are told of runs, in the archives through scripts/package -with: { file = \"serverless_function_source_code/webhooks.json\", names = [\"crm\"] }. Null for none."
}

variable "devices" {
  type        = bool
  default     = false
  description = "Whether people can have their own browsers and phones tell them of what waits."
}

variable "mail" {
  type        = object({ from = string })
  default     = null
  description = "Who mails people what has waited for more than five minutes: { from = \"countersign@example.com\" }. Null for nobody."
}

variable "traces" {
  type        = object({ endpoint = string, headers = optional(bool, false), content = optional(bool, false) })
  default     = null
  description = "The collector to which OpenTelemetry's traces of runs are sent, whether it needs the headers in the secret otlp-headers, and whether traces have content. Null: there are none."
}

variable "metrics" {
  type        = bool
  default     = false
  description = "Whether what is measured of runs is sent to the collector of traces, too."
}

variable "receipts" {
  type        = object({ jwks = string, kms_key_version = optional(string, "") })
  default     = null
  description = "The public keys by which receipts are known, and the key of Cloud KMS that signs them, or the secret receipt-key does. Null: there are none."
}

variable "secret_versions" {
  type        = map(string)
  default     = {}
  description = "Versions of secrets that are not the first, or that only some need, such as { action-key = \"1\" } where actions are declared."
}

variable "actions" {
  type        = string
  default     = null
  description = "Your declared actions, in the archives through scripts/package -with: serverless_function_source_code/actions. Null for none."
}

variable "agents" {
  type        = string
  default     = null
  description = "Your declared agents, likewise: serverless_function_source_code/agents. Null for none."
}

variable "mcp_servers" {
  type        = string
  default     = null
  description = "Your MCP servers, likewise: serverless_function_source_code/mcp.json. Null for none."
}

module "agent" {
  source = "../../modules/agent"

  environment     = "prod"
  project_id      = var.project_id
  release         = var.release
  archives        = "${path.root}/../../../dist"
  auth            = { issuer = "https://securetoken.google.com/${var.project_id}", audience = var.project_id }
  oauth_client_id = var.oauth_client_id
  github          = var.github
  containers      = var.containers
  events          = var.events
  webhooks        = var.webhooks
  devices         = var.devices
  mail            = var.mail
  receipts        = var.receipts
  traces          = var.traces
  metrics         = var.metrics
  secret_versions = merge({ chat-key = "1", oauth-client-secret = "1" }, var.secret_versions)
  actions         = var.actions
  agents          = var.agents
  mcp_servers     = var.mcp_servers
  domain          = var.domain
  alert_emails    = var.alert_emails
  min_instances   = { run = 1, stream = 1, chat = 1 }

  region              = var.region
  firestore_location  = var.firestore_location
  prefix              = var.prefix
  runtime             = var.runtime
  vpc_connector       = var.vpc_connector
  allowed_origins     = var.allowed_origins
  model               = var.model
  gmail_search        = var.gmail_search
  gmail_send_mode     = var.gmail_send_mode
  mcp_issuer          = var.mcp_issuer
  side_effects        = var.side_effects
  retention           = var.retention
  settings            = var.settings
  requests_per_minute = var.requests_per_minute
  audit_log           = var.audit_log
  labels              = var.labels
}

output "agent" {
  description = "Where the agent answers, and as whom."
  value       = module.agent
}
