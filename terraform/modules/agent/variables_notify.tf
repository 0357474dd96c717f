# The people and the programs that the deployment notifies.

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
