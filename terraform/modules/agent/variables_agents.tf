# The model, the tools and the accounts of agents.

variable "model" {
  type = object({
    name      = optional(string, "gemini-2.5-flash")
    fallbacks = optional(list(string), [])
    choices   = optional(list(string), [])
    access    = optional(string, "vertex")
    location  = optional(string, "global")
  })
  default     = {}
  nullable    = false
  description = "The model, the models that are asked in order while it is overloaded, the models that a request can choose instead, and how to call them: with the functions' identities (vertex), or with the secret gemini-api-key (key)."
  validation {
    condition     = contains(["vertex", "key"], var.model.access)
    error_message = "model.access must be vertex (no secret) or key (the secret gemini-api-key)."
  }
}

variable "oauth_client_id" {
  type        = string
  description = "The OAuth client that links users' Google accounts."
  validation {
    condition     = can(regex("^[a-z0-9-]+\\.apps\\.googleusercontent\\.com$", var.oauth_client_id))
    error_message = "oauth_client_id must look like 123-abc.apps.googleusercontent.com: create a web client in the console, with the redirect address that the README names."
  }
}

variable "gmail_send_mode" {
  type        = string
  default     = "draft"
  nullable    = false
  description = "draft sends each mail exactly once; direct needs fewer permissions, but users have to review unknown outcomes."
  validation {
    condition     = contains(["draft", "direct"], var.gmail_send_mode)
    error_message = "gmail_send_mode must be draft or direct."
  }
}

variable "gmail_search" {
  type        = bool
  default     = false
  nullable    = false
  description = "Whether agents can search and read their users' mail. The first use asks the user for gmail.readonly, a restricted scope."
}

variable "gmail_modify" {
  type        = bool
  default     = false
  nullable    = false
  description = "Whether agents can change labels of their users' mail. The first use asks the user for gmail.modify, a restricted scope."
}

variable "github" {
  type        = object({ client_id = string, url = optional(string, "https://github.com"), api_url = optional(string, "https://api.github.com") })
  default     = null
  description = "The GitHub App that links users' GitHub accounts. Its client secret is the secret github-client-secret. Null: users cannot link GitHub accounts."
  validation {
    condition     = var.github == null ? true : can(regex("^[A-Za-z0-9._-]{8,64}$", var.github.client_id))
    error_message = "github.client_id must look like Iv23liAbCdEf01234567. It is on the GitHub App's page, and is neither the App's name nor its number."
  }
  validation {
    condition     = var.github == null ? true : alltrue([for a in [var.github.url, var.github.api_url] : can(regex("^https://[a-z0-9.-]+(:[0-9]+)?(/[a-z0-9/]*[a-z0-9])?$", a))])
    error_message = "github.url and github.api_url must be https addresses without a trailing slash, such as https://github.example.com and https://github.example.com/api/v3."
  }
}

variable "containers" {
  type        = object({ host = string, images = list(string), network = optional(string, ""), package_hosts = optional(list(string), []) })
  default     = null
  description = "The engine on another machine that runs containers for plans. Its certificates are the secret docker-certs. Null: no containers."
  validation {
    condition     = var.containers == null ? true : can(regex("^tcp://[a-z0-9.-]+:[0-9]+$", var.containers.host))
    error_message = "containers.host must be the engine's address, such as tcp://engine.example.com:2376: functions have no socket."
  }
  validation {
    condition     = var.containers == null ? true : length(var.containers.images) > 0 && length(var.containers.images) <= 20 && alltrue([for i in var.containers.images : can(regex("^[a-z0-9][a-z0-9._/:-]*(@sha256:[0-9a-f]{64})?$", i))])
    error_message = "containers.images must be 1 to 20 names of images that the engine has, such as docker.io/library/golang:1.26."
  }
  validation {
    condition     = var.containers == null || contains(local.selected, "plans")
    error_message = "containers is set, but functions does not deploy plans, which runs containers."
  }
}

variable "actions" {
  type        = string
  default     = null
  description = "The path of the folder with your declared actions in the deployed function; null for none."
  validation {
    condition     = var.actions == null ? true : can(regex("^[A-Za-z0-9_./-]+$", var.actions)) && !strcontains(var.actions, "..")
    error_message = "actions must be the path of a folder without .., such as serverless_function_source_code/actions."
  }
}

variable "agents" {
  type        = string
  default     = null
  description = "The path of the folder with your declared agents in the deployed function; null for none."
  validation {
    condition     = var.agents == null ? true : can(regex("^[A-Za-z0-9_./-]+$", var.agents)) && !strcontains(var.agents, "..")
    error_message = "agents must be the path of a folder without .., such as serverless_function_source_code/agents."
  }
}

variable "mcp_servers" {
  type        = string
  default     = null
  description = "The path of the file with your MCP servers in the deployed function. The secret mcp-secrets has the values that the file refers to as $${NAME}. Null for none."
  validation {
    condition     = var.mcp_servers == null ? true : can(regex("^[A-Za-z0-9_./-]+\\.json$", var.mcp_servers)) && !strcontains(var.mcp_servers, "..")
    error_message = "mcp_servers must be the path of a file without .., such as serverless_function_source_code/mcp.json."
  }
}
