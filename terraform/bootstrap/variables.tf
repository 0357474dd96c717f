variable "project_id" {
  type        = string
  description = "The project to prepare. It exists, and has billing."
  validation {
    condition     = can(regex("^[a-z][a-z0-9-]{4,28}[a-z0-9]$", var.project_id))
    error_message = "project_id must be the id of your Google Cloud project: 6 to 30 small letters, digits and hyphens."
  }
}

variable "region" {
  type        = string
  default     = "europe-west1"
  description = "Where the state and the secrets lie."
}

variable "prefix" {
  type        = string
  default     = "agent"
  description = "What every name of this deployment begins with; the same as in the environment."
  validation {
    condition     = can(regex("^[a-z][a-z0-9-]{2,11}$", var.prefix)) && !endswith(var.prefix, "-")
    error_message = "prefix is 3 to 12 small letters, digits and hyphens."
  }
}

variable "github" {
  type        = object({ owner_id = string, repository_id = string, environment = string })
  default     = null
  description = "Whose workflows may plan (any branch) and apply (this environment of the repository). Null for none."
  validation {
    condition     = var.github == null ? true : can(regex("^[0-9]+$", var.github.owner_id)) && can(regex("^[0-9]+$", var.github.repository_id))
    error_message = "github.owner_id and github.repository_id are numbers: a name can be given up and taken by somebody else. See: gh api repos/OWNER/NAME --jq '.owner.id, .id'"
  }
  validation {
    condition     = var.github == null ? true : can(regex("^[a-zA-Z0-9_-]{1,50}$", var.github.environment))
    error_message = "github.environment is the name of the repository's protected environment, such as production."
  }
}

variable "budget" {
  type        = object({ billing_account = string, currency = string, monthly = number })
  default     = null
  description = "Warn at half, nine tenths and all of it, and when the forecast is a fifth above. Null for none."
  validation {
    condition     = var.budget == null ? true : can(regex("^[0-9A-F]{6}-[0-9A-F]{6}-[0-9A-F]{6}$", var.budget.billing_account)) && var.budget.monthly > 0
    error_message = "budget names the billing account as 012345-ABCDEF-678901, and an amount above nothing."
  }
}
