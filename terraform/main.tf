# One deployment. dev.tfvars, stage.tfvars and prod.tfvars are its environments: each has a project and a state of its own.
# `go test ./scripts/terraform -run Variables -update` writes variables.tf from the variables of modules/agent.

terraform {
  backend "gcs" {} # terraform init -backend-config=bucket=PROJECT-tfstate -backend-config=prefix=agent/ENVIRONMENT
  required_providers {
    terraform = {
      source = "terraform.io/builtin/terraform" # reads the variable file
    }
  }
}

provider "google" {
  user_project_override = true
  billing_project       = var.project_id
  default_labels        = { managed-by = "terraform" }
}

variable "environment" {
  type        = string
  description = "The name of the environment: dev, stage or prod."
  validation {
    condition     = anytrue([for p in ["agent", var.prefix] : try(jsondecode(file("${path.root}/.terraform/terraform.tfstate")).backend.config.prefix == "${p}/${var.environment}", true)])
    error_message = "environment is ${var.environment}, but terraform init selected the state of another one. Run: terraform init -reconfigure -backend-config=bucket=PROJECT-tfstate -backend-config=prefix=${var.prefix}/${var.environment}"
  }
  # Terraform itself only warns about a value that no variable declares, such as one with a misspelt name.
  validation {
    condition     = length(setsubtract(flatten([for f in fileset(path.root, "{terraform,*.auto,${var.environment}}.tfvars") : keys(provider::terraform::decode_tfvars(file("${path.root}/${f}")))]), local.declared)) == 0
    error_message = "variables.tf does not declare ${join(", ", setsubtract(flatten([for f in fileset(path.root, "{terraform,*.auto,${var.environment}}.tfvars") : keys(provider::terraform::decode_tfvars(file("${path.root}/${f}")))]), local.declared))}. Correct the names in the variable file."
  }
}

locals {
  declared = flatten([for f in fileset(path.root, "*.tf") : regexall("(?m)^variable \"([a-z_]+)\"", file("${path.root}/${f}"))])
}

module "agent" {
  source = "./modules/agent"

  environment          = var.environment
  project_id           = var.project_id
  archives             = "${path.root}/../dist"
  release              = var.release
  region               = var.region
  firestore_location   = var.firestore_location
  firestore_database   = var.firestore_database
  prefix               = var.prefix
  labels               = var.labels
  runtime              = var.runtime
  functions            = var.functions
  min_instances        = var.min_instances
  hold_traffic         = var.hold_traffic
  vpc_connector        = var.vpc_connector
  worker_pool          = var.worker_pool
  binary_authorization = var.binary_authorization
  secret_versions      = merge({ chat-key = "1", oauth-client-secret = "1" }, var.secret_versions)
  deletion_protection  = var.deletion_protection

  domain              = var.domain
  auth                = var.auth
  allowed_origins     = var.allowed_origins
  mcp_issuer          = var.mcp_issuer
  requests_per_minute = var.requests_per_minute

  model           = var.model
  oauth_client_id = var.oauth_client_id
  gmail_send_mode = var.gmail_send_mode
  gmail_search    = var.gmail_search
  gmail_modify    = var.gmail_modify
  github          = var.github
  containers      = var.containers
  actions         = var.actions
  agents          = var.agents
  mcp_servers     = var.mcp_servers

  side_effects = var.side_effects
  decisions    = var.decisions
  passkeys     = var.passkeys
  settings     = var.settings
  retention    = var.retention
  files        = var.files
  audit_log    = var.audit_log

  transparency_log = var.transparency_log

  alert_emails = var.alert_emails
  events       = var.events
  webhooks     = var.webhooks
  devices      = var.devices
  mail         = var.mail
  traces       = var.traces
  metrics      = var.metrics
  receipts     = var.receipts
}

output "agent" {
  description = "The addresses of the deployment, and the functions' identities."
  value       = module.agent
}
