# Written by `go test ./scripts/terraform -run Variables -update`: the variables of modules/agent, which validates them.

variable "project_id" {
  type        = string
  description = "The project of the environment, prepared by terraform/bootstrap."
}

variable "release" {
  type        = string
  description = "The deployed release: git describe --tags --always"
}

variable "region" {
  type        = string
  default     = "europe-west1"
  nullable    = false
  description = "The region of the functions, the queue and the keys."
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
}

variable "functions" {
  type        = list(string)
  default     = ["all"]
  nullable    = false
  description = "The functions to deploy, by name or by profile. The profile core is always deployed: runs, approvals, conversations and linked accounts for a page of your own. page adds the console and agents for web pages, and all is every function. Any other name is a function of infra/functions.json, such as terminals, plans or mcp; the functions that it needs are deployed too."
}

variable "min_instances" {
  type        = map(number)
  default     = {}
  description = "The number of warm instances by function, such as { run = 1 }. Warm instances cost money."
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
}

variable "binary_authorization" {
  type        = string
  default     = null
  description = "The policy of Binary Authorization that each deployment must meet: default for the project's, or projects/P/platforms/cloudRun/N; null for none."
}

variable "secret_versions" {
  type        = map(string)
  default     = {}
  description = "The pinned version of each secret, such as { oauth-client-secret = \"1\", chat-key = \"1\" }. Values never pass through Terraform."
}

variable "deletion_protection" {
  type        = bool
  default     = true
  description = "Whether Google refuses to delete the database, and Terraform to destroy it."
}

variable "domain" {
  type        = string
  default     = null
  description = "The one host of the console and the API. Null: no load balancer, and each function has an address of its own."
}

variable "auth" {
  type        = object({ issuer = string, audience = string, console = optional(bool, false), allowed_domains = optional(list(string), []) })
  default     = null
  description = "The issuer and the audience of your users' ID tokens. With console, the console signs users in at that issuer, as the public client that the audience names. With allowed_domains, only users with a verified e-mail address in those domains can sign in. Null: Firebase Authentication of this project."
}

variable "allowed_origins" {
  type        = list(string)
  default     = []
  nullable    = false
  description = "The exact origins of web apps on other hosts that can call the API."
}

variable "mcp_issuer" {
  description = "The OAuth issuer of the access tokens that MCP clients send to /mcp. Its subjects are the users, and a token is valid only for the address of /mcp. Without an issuer, MCP clients use tokens that users create in the console."
  type        = string
  default     = null
}

variable "requests_per_minute" {
  type        = number
  default     = 300
  nullable    = false
  description = "The limit of requests a minute from one address through the load balancer."
}

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
}

variable "oauth_client_id" {
  type        = string
  description = "The OAuth client that links users' Google accounts."
}

variable "gmail_send_mode" {
  type        = string
  default     = "draft"
  nullable    = false
  description = "draft sends each mail exactly once; direct needs fewer permissions, but users have to review unknown outcomes."
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
}

variable "containers" {
  type        = object({ host = string, images = list(string), network = optional(string, ""), package_hosts = optional(list(string), []) })
  default     = null
  description = "The engine on another machine that runs containers for plans. Its certificates are the secret docker-certs. Null: no containers."
}

variable "actions" {
  type        = string
  default     = null
  description = "The path of the folder with your declared actions in the deployed function; null for none."
}

variable "agents" {
  type        = string
  default     = null
  description = "The path of the folder with your declared agents in the deployed function; null for none."
}

variable "mcp_servers" {
  type        = string
  default     = null
  description = "The path of the file with your MCP servers in the deployed function. The secret mcp-secrets has the values that the file refers to as $${NAME}. Null for none."
}

variable "alert_emails" {
  type        = set(string)
  default     = []
  description = "The e-mail addresses that receive alerts."
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
}

variable "traces" {
  type        = object({ endpoint = string, headers = optional(bool, false), content = optional(bool, false) })
  default     = null
  description = "The collector of OpenTelemetry traces by OTLP over HTTP, such as https://otel.example.com; whether it needs headers, which the secret otlp-headers has in the form of OTEL_EXPORTER_OTLP_HEADERS; and whether traces contain messages, arguments and results. Null: no traces."
}

variable "metrics" {
  type        = bool
  default     = false
  description = "Whether to send the metrics of runs to the collector of traces."
}

variable "receipts" {
  type        = object({ jwks = string, kms_key_version = optional(string, "") })
  default     = null
  description = "The public keys that verify receipts (ops receipt-keys), and the version of the Cloud KMS key that signs them; without that version, the secret receipt-key signs. Null: no receipts."
}

variable "side_effects" {
  type        = string
  default     = "on"
  nullable    = false
  description = "The kill switch: on; ask (each side effect waits for approval, even if the user always allows it); off (no side effects)."
}

variable "decisions" {
  type        = object({ public_keys = optional(string, ""), version = optional(number, 1), mode = optional(string, "require") })
  default     = null
  description = "Signed decisions. public_keys: the keys that check them (ops rotate decision-key); until it is set, only the key is created. version: the version of the key that signs. mode: sign (what has no signature still counts), then require. Null: decisions are not signed."
}

variable "passkeys" {
  type        = object({ file = string, public_keys = optional(string, ""), version = optional(number, 1) })
  default     = null
  description = "Decisions that need a passkey; requires decisions and the console. file: the rules, a file in the source folder. public_keys: the keys that check passkeys (ops rotate enrolment-key); until it is set, only the key is created. version: the version of the key that signs. Null: none needs one."
}

variable "settings" {
  type        = map(string)
  default     = {}
  nullable    = false
  description = "Further variables from shared/config/README.md for all functions, such as { MAX_MODEL_CALLS = \"5\" }."
}

variable "retention" {
  type        = object({ days = optional(number, 0), audit_days = optional(number, 0) })
  default     = {}
  nullable    = false
  description = "Days after its last use until a conversation is deleted, and days until an audit entry is deleted; 0: never."
}

variable "files" {
  type        = object({ soft_delete_days = optional(number, 0) })
  default     = {}
  description = "Uploaded files: for how many days Google can bring back a deleted one; 0: not at all. null: no files can be uploaded."
}

variable "transparency_log" {
  type        = object({ version = optional(number, 1), public_keys = optional(string, "") })
  default     = null
  description = "The log of the audit's hashes. version: the version of the key log that signs its checkpoints. public_keys: the keys of earlier versions (ops checkpoint save prints them). Null: there is no log."
}

variable "audit_log" {
  type = object({
    retention_days = optional(number, 400)
    locked         = optional(bool, false)
  })
  default     = {}
  nullable    = false
  description = "How long the audit's logs are kept. A lock can never be removed, not even by deleting the project's contents."
}
