# The limits of agents, and the time for which data is kept.

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

variable "decisions" {
  type        = object({ public_keys = optional(string, ""), version = optional(number, 1), mode = optional(string, "require") })
  default     = null
  description = "Signed decisions. public_keys: the keys that check them (ops rotate decision-key); until it is set, only the key is created. version: the version of the key that signs. mode: sign (what has no signature still counts), then require. Null: decisions are not signed."
  validation {
    condition     = var.decisions == null ? true : can(regex("^([A-Za-z0-9+/]{59}=(,[A-Za-z0-9+/]{59}=)*)?$", var.decisions.public_keys))
    error_message = "decisions.public_keys must be public Ed25519 keys in base64 with commas between them, as go run ./scripts/ops rotate decision-key prints them."
  }
  validation {
    condition     = var.decisions == null ? true : contains(["sign", "require"], var.decisions.mode) && var.decisions.version >= 1 && floor(var.decisions.version) == var.decisions.version
    error_message = "decisions.mode must be sign or require, and decisions.version the number of a version."
  }
}

variable "passkeys" {
  type        = object({ file = string, public_keys = optional(string, ""), version = optional(number, 1) })
  default     = null
  description = "Decisions that need a passkey; requires decisions and the console. file: the rules, a file in the source folder. public_keys: the keys that check passkeys (ops rotate enrolment-key); until it is set, only the key is created. version: the version of the key that signs. Null: none needs one."
  validation {
    condition     = var.passkeys == null ? true : can(regex("^([A-Za-z0-9+/]{59}=(,[A-Za-z0-9+/]{59}=)*)?$", var.passkeys.public_keys))
    error_message = "passkeys.public_keys must be public Ed25519 keys in base64 with commas between them, as go run ./scripts/ops rotate enrolment-key prints them."
  }
  validation {
    condition     = var.passkeys == null ? true : var.passkeys.file != "" && var.passkeys.version >= 1 && floor(var.passkeys.version) == var.passkeys.version
    error_message = "passkeys.file must be a path in the source folder, and passkeys.version the number of a version."
  }
}

variable "settings" {
  type        = map(string)
  default     = {}
  nullable    = false
  description = "Further variables from shared/config/README.md for all functions, such as { MAX_MODEL_CALLS = \"5\" }."
  validation {
    condition = alltrue([for name in keys(var.settings) : contains([
      "APPROVAL_TTL", "CHAT_MAX_MODEL_CALLS", "GMAIL_UNITS_PER_MINUTE", "HOLD", "LOG_LEVEL", "MAX_APPROVALS_PER_DAY", "MAX_COMMANDS_PER_DAY", "MAX_MODEL_CALLS",
      "MAX_MODEL_CALLS_PER_DAY", "MAX_OPEN_APPROVALS", "MAX_RUNS_PER_MINUTE", "MAX_TOKENS_PER_DAY", "MEMORY", "MODEL_REQUESTS_PER_MINUTE", "MODEL_TOKENS_PER_MINUTE", "PERSONA", "PLAN_MAX_ASKS", "PLAN_MAX_DEADLINE", "PLAN_MAX_MODEL_CALLS", "POLICY_ALWAYS_ASK", "POLICY_DENIED", "POLICY_PERMITTED", "REJECT_OUTCOME", "RUN_DEADLINE",
      "OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE", "OTEL_METRIC_EXPORT_INTERVAL", "OTEL_SERVICE_NAME", "OTEL_TRACES_SAMPLER", "OTEL_TRACES_SAMPLER_ARG", "TERMINAL", "TERMINAL_DENY", "TERMINAL_HOSTS", "WEB_TOOLS",
    ], name)])
    error_message = "settings accepts the limits, the policy, PERSONA, LOG_LEVEL, and the settings of terminals, the web, memory, traces and metrics. Everything else has a separate variable. Secrets do not belong here."
  }
  validation {
    condition     = lookup(var.settings, "TERMINAL", "off") != "on" || contains(local.selected, "terminals")
    error_message = "settings has TERMINAL = \"on\", but functions does not deploy terminals."
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

variable "files" {
  type        = object({ soft_delete_days = optional(number, 0) })
  default     = {}
  description = "Uploaded files: for how many days Google can bring back a deleted one; 0: not at all. null: no files can be uploaded."
  validation {
    condition     = try(var.files.soft_delete_days == 0 || var.files.soft_delete_days >= 7 && var.files.soft_delete_days <= 90, var.files == null)
    error_message = "files.soft_delete_days must be 0, or 7 to 90."
  }
}

variable "transparency_log" {
  type        = object({ version = optional(number, 1), public_keys = optional(string, "") })
  default     = null
  description = "The log of the audit's hashes. version: the version of the key log that signs its checkpoints. public_keys: the keys of earlier versions (ops checkpoint save prints them). Null: there is no log."
  validation {
    condition     = var.transparency_log == null ? true : var.transparency_log.version >= 1 && floor(var.transparency_log.version) == var.transparency_log.version
    error_message = "transparency_log.version must be the number of a version."
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
