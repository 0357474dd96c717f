variable "project_id" {
  type        = string
  description = "The project that the function runs in."
}

variable "region" {
  type        = string
  description = "The region that the function runs in."
}

variable "prefix" {
  type        = string
  description = "The prefix of every name in this deployment."
}

variable "name" {
  type        = string
  description = "The function's name. With the prefix it is also the name of the service and of the identity."
  validation {
    condition     = can(regex("^[a-z]([-a-z0-9]*[a-z0-9])?$", var.name))
    error_message = "The function's name is ${var.name}; it must be lower-case letters, digits and hyphens."
  }
  validation {
    condition     = length("${var.prefix}-${var.name}") >= 6 && length("${var.prefix}-${var.name}") <= 30
    error_message = "${var.prefix}-${var.name} must have 6 to 30 characters, because an identity's name must: shorten the prefix."
  }
}

variable "entry_point" {
  type        = string
  description = "The name that the function registers with functions-framework-go."
  validation {
    condition     = can(regex("^[A-Za-z][A-Za-z0-9_-]*$", var.entry_point))
    error_message = "The function's entry point is invalid: set entryPoint in infra/functions.json to the name that the function registers."
  }
}

variable "runtime" {
  type        = string
  description = "The Go runtime of Cloud Functions."
}

variable "archive" {
  type        = string
  description = "The archive of this function, built by scripts/package."
}

variable "release" {
  type        = string
  description = "The deployed release. /health and each log line report it with the archive's hash."
}

variable "source_bucket" {
  type        = string
  description = "The bucket for the archives."
}

variable "docker_repository" {
  type        = string
  description = "The Artifact Registry repository for the images, by its full id."
}

variable "build_service_account" {
  type        = string
  description = "Who builds, as projects/PROJECT/serviceAccounts/EMAIL."
  validation {
    condition     = can(regex("^projects/[^/]+/serviceAccounts/[^/]+@[^/]+$", var.build_service_account))
    error_message = "The build's identity must be named in full: projects/PROJECT/serviceAccounts/EMAIL."
  }
}

variable "cpu" {
  type        = string
  description = "CPUs of an instance."
}

variable "memory" {
  type        = string
  description = "Memory of an instance, such as 512Mi."
  validation {
    condition     = can(regex("^[0-9]+(Mi|Gi)$", var.memory))
    error_message = "Memory is a number with Mi or Gi, such as 512Mi; ${var.memory} is not."
  }
}

variable "timeout_seconds" {
  type        = number
  description = "How long one request may take."
  validation {
    condition     = var.timeout_seconds >= 1 && var.timeout_seconds <= 3600
    error_message = "A function runs at most 3600 s, and at least one."
  }
}

variable "concurrency" {
  type        = number
  description = "Requests that one instance serves at a time; most of them wait for Gemini."
  validation {
    condition     = var.concurrency == 1 || tonumber(var.cpu) >= 1
    error_message = "A concurrency above 1 needs at least one CPU."
  }
}

variable "min_instances" {
  type        = number
  description = "The number of warm instances, which cost money."
}

variable "max_instances" {
  type        = number
  description = "The maximum number of instances. It limits the use of the model's quota, and the bill."
  validation {
    condition     = var.max_instances >= max(1, var.min_instances)
    error_message = "max_instances is ${var.max_instances}; it must be at least 1 and at least min_instances, which is ${var.min_instances}."
  }
}

variable "hold_traffic" {
  type        = bool
  default     = false
  description = "Whether the revisions that have the requests keep them at a deployment."
}

variable "ingress" {
  type        = string
  description = "The networks that requests can come from."
  validation {
    condition     = contains(["ALLOW_ALL", "ALLOW_INTERNAL_AND_GCLB", "ALLOW_INTERNAL_ONLY"], var.ingress)
    error_message = "ingress must be ALLOW_ALL, ALLOW_INTERNAL_AND_GCLB or ALLOW_INTERNAL_ONLY."
  }
}

variable "invoker" {
  type        = string
  description = "The caller that can invoke the function: allUsers or one service account."
  validation {
    condition     = var.invoker == "allUsers" ? var.ingress != "ALLOW_INTERNAL_ONLY" : var.ingress == "ALLOW_INTERNAL_ONLY"
    error_message = "A function that everyone may call is not internal, and one that is internal names its one caller."
  }
}

variable "vpc_connector" {
  type        = string
  default     = null
  description = "A Serverless VPC Access connector for all outgoing requests, which gives them a fixed address; null for none."
}

variable "worker_pool" {
  type        = string
  default     = null
  description = "A private pool of Cloud Build that builds the functions, projects/P/locations/L/workerPools/W; null for Google's own."
}

variable "binary_authorization" {
  type        = string
  default     = null
  description = "The policy of Binary Authorization that each deployment must meet: default for the project's, or projects/P/platforms/cloudRun/N; null for none."
}

variable "environment" {
  type        = map(string)
  default     = {}
  description = "Environment variables without secrets."
}

variable "secrets" {
  type        = map(object({ secret = string, version = string }))
  default     = {}
  description = "Environment variables from Secret Manager, each with a pinned version."
  validation {
    condition     = alltrue([for s in values(var.secrets) : can(regex("^[1-9][0-9]*$", s.version))])
    error_message = "A secret's version must be a number: with latest, a rotation would reach instances one by one and without a plan."
  }
}

variable "roles" {
  type        = list(object({ role = string, on = string }))
  default     = []
  description = "The roles of the function's parts, and the resources that they are granted on."
  validation {
    condition     = alltrue([for r in var.roles : contains(["project", "database", "topic", "sweeps", "events", "tokens", "receipts", "decisions", "enrolment", "files", "log", "checkpoint", "log-key"], r.on)])
    error_message = "A role is granted on the project, the database, one of the topics, a key, a bucket, or the checkpoint in the bucket of the log."
  }
}

variable "on" {
  type        = object({ database = string, topic = string, sweeps = string, events = string, tokens = string, receipts = optional(string, ""), decisions = optional(string, ""), enrolment = optional(string, ""), files = optional(string, ""), log = optional(string, ""), log_key = optional(string, "") })
  description = "The resources that roles are granted on: the database, the topics of resumes, sweeps and events, the key of tokens, the keys of receipts, decisions and passkeys if Cloud KMS signs them, the bucket of uploaded files, and the bucket and the key of the log of the audit."
}

variable "labels" {
  type        = map(string)
  default     = {}
  description = "Labels of all resources."
}
