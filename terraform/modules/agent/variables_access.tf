# The callers that the deployment accepts.

variable "domain" {
  type        = string
  default     = null
  description = "The one host of the console and the API. Null: no load balancer, and each function has an address of its own."
  validation {
    condition     = var.domain == null ? true : can(regex("^([a-z0-9]([a-z0-9-]*[a-z0-9])?\\.)+[a-z]{2,}$", var.domain))
    error_message = "domain is one host such as agent.example.com, without https:// and without *: its certificate is made for that host, and there is none for a pattern."
  }
  validation {
    condition     = var.domain != null || var.environment == "dev"
    error_message = "Set domain: without one there is no load balancer, no throttle and no certificate of your own, which is for dev only."
  }
}

variable "auth" {
  type        = object({ issuer = string, audience = string, console = optional(bool, false), allowed_domains = optional(list(string), []) })
  default     = null
  description = "The issuer and the audience of your users' ID tokens. With console, the console signs users in at that issuer, as the public client that the audience names. With allowed_domains, only users with a verified e-mail address in those domains can sign in. Null: Firebase Authentication of this project."
  validation {
    condition     = var.auth == null ? true : can(regex("^https://[^*?#\\s]+$", var.auth.issuer))
    error_message = "auth.issuer must be the https address of the issuer of your users' ID tokens, such as https://securetoken.google.com/PROJECT."
  }
  validation {
    condition     = var.auth == null ? true : can(regex("^[^\\s*,;]+$", var.auth.audience))
    error_message = "auth.audience must be the one exact audience of your users' ID tokens; with an empty one any app's users could sign in."
  }
  validation {
    condition     = var.auth == null ? true : alltrue([for d in var.auth.allowed_domains : can(regex("^([a-z0-9]([a-z0-9-]*[a-z0-9])?\\.)+[a-z0-9]([a-z0-9-]*[a-z0-9])?$", d))])
    error_message = "auth.allowed_domains must be exact domains of e-mail addresses in lower case, such as example.com, without * or @."
  }
}

variable "allowed_origins" {
  type        = list(string)
  default     = []
  nullable    = false
  description = "The exact origins of web apps on other hosts that can call the API."
  validation {
    condition     = alltrue([for o in var.allowed_origins : can(regex("^https://[a-z0-9.-]+(:[0-9]+)?$", o))])
    error_message = "allowed_origins must be exact, such as https://app.example.com, without *, path or trailing slash. A pattern would let any site act for a signed-in user."
  }
}

variable "mcp_issuer" {
  description = "The OAuth issuer of the access tokens that MCP clients send to /mcp. Its subjects are the users, and a token is valid only for the address of /mcp. Without an issuer, MCP clients use tokens that users create in the console."
  type        = string
  default     = null

  validation {
    condition     = var.mcp_issuer == null || can(regex("^https://[^?#]+$", var.mcp_issuer))
    error_message = "mcp_issuer must be an https address without a query."
  }
  validation {
    condition     = var.mcp_issuer == null || contains(local.selected, "mcp")
    error_message = "mcp_issuer is set, but functions does not deploy mcp."
  }
}

variable "requests_per_minute" {
  type        = number
  default     = 300
  nullable    = false
  description = "The limit of requests a minute from one address through the load balancer."
  validation {
    condition     = var.requests_per_minute >= 10 && var.requests_per_minute <= 100000
    error_message = "requests_per_minute must be 10 to 100000."
  }
}
