# Every input that can be wrong fails before anything is made, with a sentence that says what to do.

mock_provider "google" {
  mock_data "google_project" {
    defaults = { number = "123456789012" }
  }
}

variables {
  project_id      = "acme-prod"
  environment     = "prod"
  archives        = "../../../dist"
  auth            = { issuer = "https://securetoken.google.com/acme-prod", audience = "acme-prod" }
  oauth_client_id = "123-abc.apps.googleusercontent.com"
  secret_versions = { chat-key = "1", oauth-client-secret = "1" }
  domain          = "agent.acme.com"
  alert_emails    = ["oncall@acme.com"]
}

run "a_path_that_leaves_the_archive" {
  command = plan
  variables {
    mcp_servers = "../mcp.json"
  }
  expect_failures = [var.mcp_servers]
}

run "an_unpinned_secret_is_refused" {
  command = plan
  variables {
    secret_versions = { chat-key = "1", oauth-client-secret = "latest" }
  }
  expect_failures = [var.secret_versions]
}

run "a_secret_without_a_version_is_refused" {
  command = plan
  variables {
    secret_versions = {}
  }
  expect_failures = [var.secret_versions]
}

run "any_origin_is_refused" {
  command = plan
  variables {
    allowed_origins = ["*"]
  }
  expect_failures = [var.allowed_origins]
}

run "an_origin_without_https_is_refused" {
  command = plan
  variables {
    allowed_origins = ["http://app.acme.com"]
  }
  expect_failures = [var.allowed_origins]
}

run "an_origin_with_a_path_is_refused" {
  command = plan
  variables {
    allowed_origins = ["https://app.acme.com/"]
  }
  expect_failures = [var.allowed_origins]
}

run "an_empty_audience_is_refused" {
  command = plan
  variables {
    auth = { issuer = "https://securetoken.google.com/acme-prod", audience = "" }
  }
  expect_failures = [var.auth]
}

run "an_audience_that_is_a_list_is_refused" {
  command = plan
  variables {
    auth = { issuer = "https://securetoken.google.com/acme-prod", audience = "a,b" }
  }
  expect_failures = [var.auth]
}

run "an_issuer_without_https_is_refused" {
  command = plan
  variables {
    auth = { issuer = "securetoken.google.com/acme-prod", audience = "acme-prod" }
  }
  expect_failures = [var.auth]
}

run "a_domain_that_no_certificate_is_made_for_is_refused" {
  command = plan
  variables {
    domain = "*.acme.com"
  }
  expect_failures = [var.domain]
}

run "a_domain_with_https_is_refused" {
  command = plan
  variables {
    domain = "https://agent.acme.com"
  }
  expect_failures = [var.domain]
}

run "production_without_a_domain_is_refused" {
  command = plan
  variables {
    domain = null
  }
  expect_failures = [var.domain]
}

run "production_that_tells_nobody_is_refused" {
  command = plan
  variables {
    alert_emails = []
  }
  expect_failures = [var.alert_emails]
}

run "an_alert_to_nowhere_is_refused" {
  command = plan
  variables {
    alert_emails = ["oncall"]
  }
  expect_failures = [var.alert_emails]
}

run "production_without_protection_is_refused" {
  command = plan
  variables {
    deletion_protection = false
  }
  expect_failures = [var.deletion_protection]
}

run "a_prefix_too_long_for_identities_is_refused" {
  command = plan
  variables {
    prefix = "countersign-agent"
  }
  expect_failures = [var.prefix]
}

run "an_example_project_is_refused" {
  command = plan
  variables {
    project_id = "example-agent"
  }
  expect_failures = [var.project_id]
}

run "an_unknown_environment_is_refused" {
  command = plan
  variables {
    environment = "qa"
  }
  expect_failures = [var.environment]
}

run "a_region_that_is_a_zone_is_refused" {
  command = plan
  variables {
    region = "europe-west1-b"
  }
  expect_failures = [var.region]
}

run "an_unknown_way_to_the_model_is_refused" {
  command = plan
  variables {
    model = { access = "proxy" }
  }
  expect_failures = [var.model]
}

run "an_unknown_kill_switch_is_refused" {
  command = plan
  variables {
    side_effects = "maybe"
  }
  expect_failures = [var.side_effects]
}

run "an_audit_that_is_gone_before_what_it_is_about_is_refused" {
  command = plan
  variables {
    retention = { days = 90, audit_days = 90 }
  }
  expect_failures = [var.retention]
}

run "a_secret_among_the_settings_is_refused" {
  command = plan
  variables {
    settings = { GEMINI_API_KEY = "AIza" }
  }
  expect_failures = [var.settings]
}

run "an_unknown_function_to_keep_warm_is_refused" {
  command = plan
  variables {
    min_instances = { reconcile = 1 }
  }
  expect_failures = [var.min_instances]
}

run "a_github_app_by_its_title_is_refused" {
  command = plan
  variables {
    github = { client_id = "Our App" }
  }
  expect_failures = [var.github]
}

run "a_github_without_tls_is_refused" {
  command = plan
  variables {
    github = { client_id = "Iv23liAbCdEf01234567", url = "http://github.example.com" }
  }
  expect_failures = [var.github]
}

run "an_engine_at_a_socket_is_refused" {
  command = plan
  variables {
    containers = { host = "unix:///var/run/docker.sock", images = ["alpine:3"] }
  }
  expect_failures = [var.containers]
}

run "a_webhook_with_a_name_that_no_subscription_can_have_is_refused" {
  command = plan
  variables {
    webhooks = { file = "serverless_function_source_code/webhooks.json", names = ["C R M"] }
  }
  expect_failures = [var.webhooks]
}

run "mail_from_no_address_is_refused" {
  command = plan
  variables {
    mail = { from = "Countersign <countersign@example.com>" }
  }
  expect_failures = [var.mail]
}

run "traces_go_nowhere_in_the_clear" {
  command = plan
  variables {
    traces = { endpoint = "http://otel.example.com:4318" }
  }
  expect_failures = [var.traces]
}

run "metrics_need_a_collector" {
  command = plan
  variables {
    metrics = true
  }
  expect_failures = [var.metrics]
}

run "receipts_without_public_keys_are_refused" {
  command = plan
  variables {
    receipts = { jwks = "{}" }
  }
  expect_failures = [var.receipts]
}

run "containers_of_no_image_are_refused" {
  command = plan
  variables {
    containers = { host = "tcp://engine.example.com:2376", images = [] }
  }
  expect_failures = [var.containers]
}

run "an_oauth_client_by_its_title_is_refused" {
  command = plan
  variables {
    oauth_client_id = "Countersign"
  }
  expect_failures = [var.oauth_client_id]
}

run "an_unknown_send_mode_is_refused" {
  command = plan
  variables {
    gmail_send_mode = "smtp"
  }
  expect_failures = [var.gmail_send_mode]
}

run "an_issuer_of_agents_without_https_is_refused" {
  command = plan
  variables {
    mcp_issuer = "http://login.example.com"
  }
  expect_failures = [var.mcp_issuer]
}

run "a_release_with_blanks_is_refused" {
  command = plan
  variables {
    release = "v1 of today"
  }
  expect_failures = [var.release]
}

run "another_language_is_refused" {
  command = plan
  variables {
    runtime = "nodejs22"
  }
  expect_failures = [var.runtime]
}

run "a_throttle_that_lets_nobody_in_is_refused" {
  command = plan
  variables {
    requests_per_minute = 0
  }
  expect_failures = [var.requests_per_minute]
}

run "an_audit_log_of_a_week_is_refused" {
  command = plan
  variables {
    audit_log = { retention_days = 7 }
  }
  expect_failures = [var.audit_log]
}

run "a_way_out_of_the_archive_is_refused" {
  command = plan
  variables {
    actions = "../actions"
  }
  expect_failures = [var.actions]
}

run "agents_outside_the_archive_are_refused" {
  command = plan
  variables {
    agents = "../agents"
  }
  expect_failures = [var.agents]
}
