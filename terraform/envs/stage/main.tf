# The stage environment, with a separate project and state. It is like prod, but keeps no instances warm. Put your values into terraform.tfvars.

terraform {
  backend "gcs" {
    prefix = "agent/stage" # the bucket: terraform init -backend-config=bucket=PROJECT-tfstate
  }
}

provider "google" {
  user_project_override = true
  billing_project       = var.project_id
  default_labels        = { managed-by = "terraform" }
}

variable "project_id" {
  type        = string
  description = "The project that terraform/bootstrap prepared."
}

variable "release" {
  type        = string
  description = "The deployed release: git describe --tags --always"
}

variable "oauth_client_id" {
  type        = string
  description = "The OAuth client that links users' Google accounts."
}

variable "domain" {
  type        = string
  description = "The host name of the console and the API."
}

variable "alert_emails" {
  type        = set(string)
  description = "The e-mail addresses that receive alerts."
}

variable "github" {
  type        = object({ client_id = string, url = optional(string, "https://github.com"), api_url = optional(string, "https://api.github.com") })
  default     = null
  description = "The GitHub App that links users' GitHub accounts. Null: users cannot link GitHub accounts."
}

variable "containers" {
  type        = object({ host = string, images = list(string), network = optional(string, "") })
  default     = null
  description = "The engine that runs containers for plans, such as { host = \"tcp://engine.example.com:2376\", images = [\"docker.io/library/golang:1.26\"] }."
}

variable "events" {
  type        = bool
  default     = false
  description = "Whether to publish events about runs, without content, to a Pub/Sub topic."
}

variable "webhooks" {
  type        = object({ file = string, names = list(string) })
  default     = null
  description = "Your endpoints that receive events about runs. Add the file to the archives with scripts/package -with: { file = \"serverless_function_source_code/webhooks.json\", names = [\"crm\"] }. Null for none."
}

variable "devices" {
  type        = bool
  default     = false
  description = "Whether users can turn on notifications about pending approvals in their browsers and phones."
}

variable "mail" {
  type        = object({ from = string })
  default     = null
  description = "The sender of e-mails about approvals older than five minutes: { from = \"countersign@example.com\" }. Null sends none."
}

variable "traces" {
  type        = object({ endpoint = string, headers = optional(bool, false), content = optional(bool, false) })
  default     = null
  description = "The collector of OpenTelemetry traces, whether it needs the headers in the secret otlp-headers, and whether traces contain messages and arguments. Null: no traces."
}

variable "metrics" {
  type        = bool
  default     = false
  description = "Whether to send the metrics of runs to the collector of traces."
}

variable "receipts" {
  type        = object({ jwks = string, kms_key_version = optional(string, "") })
  default     = null
  description = "The public keys that verify receipts, and the Cloud KMS key that signs them; without that key, the secret receipt-key signs. Null: no receipts."
}

variable "secret_versions" {
  type        = map(string)
  default     = {}
  description = "Versions of secrets other than 1, and versions of optional secrets, such as { action-key = \"1\" } if you declare actions."
}

variable "actions" {
  type        = string
  default     = null
  description = "The folder of your declared actions, added to the archives with scripts/package -with: serverless_function_source_code/actions. Null for none."
}

variable "agents" {
  type        = string
  default     = null
  description = "The folder of your declared agents, added in the same way: serverless_function_source_code/agents. Null for none."
}

variable "mcp_servers" {
  type        = string
  default     = null
  description = "The file of your MCP servers, added in the same way: serverless_function_source_code/mcp.json. Null for none."
}

module "agent" {
  source = "../../modules/agent"

  environment     = "stage"
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
  description = "The addresses of the deployment, and the functions' identities."
  value       = module.agent
}
