variable "project_id" {
  type        = string
  description = "The project to prepare. It must exist and have billing."
  validation {
    condition     = can(regex("^[a-z][a-z0-9-]{4,28}[a-z0-9]$", var.project_id))
    error_message = "project_id must be the ID of your Google Cloud project: 6 to 30 lower-case letters, digits and hyphens."
  }
}

variable "region" {
  type        = string
  default     = "europe-west1"
  description = "The location of the state and the secrets."
}

variable "prefix" {
  type        = string
  default     = "agent"
  description = "The prefix of every name in this deployment; the same as in the environment."
  validation {
    condition     = can(regex("^[a-z][a-z0-9-]{2,11}$", var.prefix)) && !endswith(var.prefix, "-")
    error_message = "prefix must be 3 to 12 lower-case letters, digits and hyphens."
  }
}

variable "github" {
  type        = object({ owner_id = string, repository_id = string, environment = string })
  default     = null
  description = "The repository whose workflows can plan (on any branch) and apply (in this protected environment). Null for none."
  validation {
    condition     = var.github == null ? true : can(regex("^[0-9]+$", var.github.owner_id)) && can(regex("^[0-9]+$", var.github.repository_id))
    error_message = "github.owner_id and github.repository_id must be numbers, because a name can be given up and registered by somebody else. See: gh api repos/OWNER/NAME --jq '.owner.id, .id'"
  }
  validation {
    condition     = var.github == null ? true : can(regex("^[a-zA-Z0-9_-]{1,50}$", var.github.environment))
    error_message = "github.environment must be the name of the repository's protected environment, such as production."
  }
}

variable "budget" {
  type        = object({ billing_account = string, currency = string, monthly = number, emails = optional(set(string), []) })
  default     = null
  description = "The budget. Warnings are sent at 50 %, 90 % and 100 % of it, and if the forecast is above 120 %: to the billing account's administrators, and to up to five emails. Null for none."
  validation {
    condition     = var.budget == null ? true : can(regex("^[0-9A-F]{6}-[0-9A-F]{6}-[0-9A-F]{6}$", var.budget.billing_account)) && var.budget.monthly > 0
    error_message = "budget must have a billing account such as 012345-ABCDEF-678901, and an amount above 0."
  }
  validation {
    condition     = var.budget == null ? true : length(var.budget.emails) <= 5 && alltrue([for e in var.budget.emails : can(regex("^[^@ ]+@[^@ ]+$", e))])
    error_message = "budget.emails must be at most five e-mail addresses."
  }
}
