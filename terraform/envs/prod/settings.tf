# What an operator may set besides: each variable of the module that has a default, which null leaves as it is.

variable "region" {
  type        = string
  default     = null
  description = "The region of the functions, the queue and the keys."
}

variable "firestore_location" {
  type        = string
  default     = null
  description = "Where the database lies, near the region. It can never be changed."
}

variable "prefix" {
  type        = string
  default     = null
  description = "What every name of this deployment begins with."
}

variable "runtime" {
  type        = string
  default     = null
  description = "The Go runtime of Cloud Functions; its minor version is go.mod's."
}

variable "vpc_connector" {
  type        = string
  default     = null
  description = "A Serverless VPC Access connector, for a fixed address of what goes out; null for none."
}

variable "allowed_origins" {
  type        = list(string)
  default     = null
  description = "Exact origins of web apps on other hosts that may call the API."
}

variable "model" {
  type = object({
    name     = optional(string, "gemini-2.5-flash")
    access   = optional(string, "vertex")
    location = optional(string, "global")
  })
  default     = null
  description = "The model, and how it is reached: by the functions' own identities (vertex), or with the secret gemini-api-key (key)."
}

variable "gmail_search" {
  type        = bool
  default     = null
  description = "Whether agents may search their users' mail; who first needs it is asked for gmail.readonly, a restricted scope."
}

variable "gmail_send_mode" {
  type        = string
  default     = null
  description = "draft sends exactly once; direct asks users for less and leaves unclear outcomes to review."
}

variable "mcp_issuer" {
  type        = string
  default     = null
  description = "The OAuth issuer of the access tokens that agents of other programs bring to /mcp: its subjects are the users, and each token is for the address of /mcp alone. Without it they bring tokens that users make in the console."
}

variable "side_effects" {
  type        = string
  default     = null
  description = "The kill switch: on; ask (each side effect waits for its user, whatever was always allowed); off (none)."
}

variable "retention" {
  type        = object({ days = optional(number, 0), audit_days = optional(number, 0) })
  default     = null
  description = "For how many days a conversation is kept after it was last used, and an entry of the audit; 0: for good."
}

variable "settings" {
  type        = map(string)
  default     = null
  description = "More variables of shared/config/README.md for all functions, such as { MAX_MODEL_CALLS = \"5\" }."
}

variable "requests_per_minute" {
  type        = number
  default     = null
  description = "Requests a minute that one address may send through the load balancer."
}

variable "audit_log" {
  type = object({
    retention_days = optional(number, 400)
    locked         = optional(bool, false)
  })
  default     = null
  description = "How long logs for the audit are kept. Locking can never be undone, not even by deleting the project's contents."
}

variable "labels" {
  type        = map(string)
  default     = null
  description = "More labels for all resources."
}
