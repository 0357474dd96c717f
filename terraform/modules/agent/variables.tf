# The place, the names and the size of the deployment.

variable "project_id" {
  type        = string
  description = "The project of the environment, prepared by terraform/bootstrap."
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

variable "archives" {
  type        = string
  description = "The folder with one zip for each function, made by: go run ./scripts/package -out dist"
}

variable "release" {
  type        = string
  description = "The deployed release: git describe --tags --always"
  validation {
    condition     = can(regex("^[A-Za-z0-9][A-Za-z0-9._-]{0,49}$", var.release))
    error_message = "release is at most 50 letters, digits, dots, hyphens and underscores."
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

variable "firestore_database" {
  type        = string
  default     = null
  description = "The name of the database, after a restore into another one. Left out: PREFIX-store."
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

variable "labels" {
  type        = map(string)
  default     = {}
  nullable    = false
  description = "Additional labels for all resources."
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

variable "functions" {
  type        = list(string)
  default     = ["all"]
  nullable    = false
  description = "The functions to deploy, by name or by profile. The profile core is always deployed: runs, approvals, conversations and linked accounts for a page of your own. page adds the console and agents for web pages, and all is every function. Any other name is a function of infra/functions.json, such as terminals, plans or mcp; the functions that it needs are deployed too."
  validation {
    condition     = alltrue([for name in var.functions : name == "all" || contains(concat(keys(local.list.profiles), local.names), name)])
    error_message = "functions names ${join(", ", [for name in var.functions : name if name != "all" && !contains(concat(keys(local.list.profiles), local.names), name)])}, which is neither a profile (${join(", ", keys(local.list.profiles))}, all) nor a function of infra/functions.json (${join(", ", local.names)})."
  }
}

variable "min_instances" {
  type        = map(number)
  default     = {}
  description = "The number of warm instances by function, such as { run = 1 }. Warm instances cost money."
  validation {
    condition     = alltrue([for name in keys(var.min_instances) : contains(keys(local.functions), name)])
    error_message = "min_instances names ${join(", ", setsubtract(keys(var.min_instances), keys(local.functions)))}, which functions does not deploy."
  }
}

variable "hold_traffic" {
  type        = bool
  default     = false
  nullable    = false
  description = "Whether the revisions that have the requests keep them at a deployment, so that you can move the requests in steps (operations.md, Move traffic in steps)."
}

variable "vpc_connector" {
  type        = string
  default     = null
  description = "A Serverless VPC Access connector, which gives outgoing requests a fixed address; null for none."
}

variable "worker_pool" {
  type        = string
  default     = null
  description = "A private pool of Cloud Build that builds the functions, projects/P/locations/L/workerPools/W; null for Google's own."

  validation {
    condition     = var.worker_pool == null ? true : can(regex("^projects/[^/]+/locations/[^/]+/workerPools/[^/]+$", var.worker_pool))
    error_message = "worker_pool must be projects/P/locations/L/workerPools/W."
  }
}

variable "binary_authorization" {
  type        = string
  default     = null
  description = "The policy of Binary Authorization that each deployment must meet: default for the project's, or projects/P/platforms/cloudRun/N; null for none."

  validation {
    condition     = var.binary_authorization == null ? true : can(regex("^(default|projects/[^/]+/platforms/cloudRun/[^/]+)$", var.binary_authorization))
    error_message = "binary_authorization must be default or projects/P/platforms/cloudRun/N."
  }
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

variable "deletion_protection" {
  type        = bool
  default     = true
  description = "Whether Google refuses to delete the database, and Terraform to destroy it."
  validation {
    condition     = var.deletion_protection || var.environment == "dev"
    error_message = "deletion_protection can be off only in dev: elsewhere the database holds the record of users' approvals."
  }
}
