# The optional settings: each variable of the module that has a default. Null keeps the default.

variable "region" {
  type        = string
  default     = null
  description = "The region of the functions, the queue and the keys."
}

variable "firestore_location" {
  type        = string
  default     = null
  description = "The location of the database, near the region. It can never be changed."
}

variable "prefix" {
  type        = string
  default     = null
  description = "The prefix of every name in this deployment."
}

variable "runtime" {
  type        = string
  default     = null
  description = "The Go runtime of Cloud Functions. Its minor version must be that of go.mod."
}

variable "vpc_connector" {
  type        = string
  default     = null
  description = "A Serverless VPC Access connector, which gives outgoing requests a fixed address; null for none."
}

variable "allowed_origins" {
  type        = list(string)
  default     = null
  description = "The exact origins of web apps on other hosts that can call the API."
}

variable "model" {
  type = object({
    name     = optional(string, "gemini-2.5-flash")
    access   = optional(string, "vertex")
    location = optional(string, "global")
  })
  default     = null
  description = "The model, and how to call it: with the functions' identities (vertex), or with the secret gemini-api-key (key)."
}

variable "gmail_search" {
  type        = bool
  default     = null
  description = "Whether agents can search and read their users' mail. The first use asks the user for gmail.readonly, a restricted scope."
}

variable "gmail_send_mode" {
  type        = string
  default     = null
  description = "draft sends each mail exactly once; direct needs fewer permissions, but users have to review unknown outcomes."
}

variable "mcp_issuer" {
  type        = string
  default     = null
  description = "The OAuth issuer of the access tokens that MCP clients send to /mcp. Its subjects are the users, and a token is valid only for the address of /mcp. Without an issuer, MCP clients use tokens that users create in the console."
}

variable "side_effects" {
  type        = string
  default     = null
  description = "The kill switch: on; ask (each side effect waits for approval, even if the user always allows it); off (no side effects)."
}

variable "retention" {
  type        = object({ days = optional(number, 0), audit_days = optional(number, 0) })
  default     = null
  description = "Days after its last use until a conversation is deleted, and days until an audit entry is deleted; 0: never."
}

variable "settings" {
  type        = map(string)
  default     = null
  description = "Further variables from shared/config/README.md for all functions, such as { MAX_MODEL_CALLS = \"5\" }."
}

variable "requests_per_minute" {
  type        = number
  default     = null
  description = "The limit of requests a minute from one address through the load balancer."
}

variable "audit_log" {
  type = object({
    retention_days = optional(number, 400)
    locked         = optional(bool, false)
  })
  default     = null
  description = "How long the audit's logs are kept. A lock can never be removed, not even by deleting the project's contents."
}

variable "labels" {
  type        = map(string)
  default     = null
  description = "Additional labels for all resources."
}
