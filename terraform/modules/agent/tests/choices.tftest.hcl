# Deployments of some of the functions.

mock_provider "google" {
  mock_data "google_project" {
    defaults = { number = "123456789012" }
  }
}

# Values that the functions check when they start have the form that Google gives them.
override_resource {
  target = google_service_account.push
  values = { email = "agent-push@acme-dev.iam.gserviceaccount.com", member = "serviceAccount:agent-push@acme-dev.iam.gserviceaccount.com" }
}
override_resource {
  target = google_service_account.scheduler
  values = { email = "agent-scheduler@acme-dev.iam.gserviceaccount.com", member = "serviceAccount:agent-scheduler@acme-dev.iam.gserviceaccount.com" }
}
override_resource {
  target = google_pubsub_topic.resume
  values = { id = "projects/acme-dev/topics/agent-resume" }
}
override_resource {
  target = google_pubsub_topic.sweep
  values = { id = "projects/acme-dev/topics/agent-sweep" }
}
override_resource {
  target = google_pubsub_topic.events
  values = { id = "projects/acme-dev/topics/agent-events" }
}
override_resource {
  target = google_kms_crypto_key.tokens
  values = { id = "projects/acme-dev/locations/europe-west1/keyRings/agent/cryptoKeys/oauth-tokens" }
}

variables {
  project_id      = "acme-dev"
  environment     = "dev"
  release         = "v1.2.3"
  archives        = "../../../dist"
  auth            = { issuer = "https://accounts.google.com", audience = "1-web.apps.googleusercontent.com", console = true }
  oauth_client_id = "123-abc.apps.googleusercontent.com"
  secret_versions = { chat-key = "1", oauth-client-secret = "1", gemini-api-key = "2" }
}

run "the_core" {
  variables {
    functions       = ["core"]
    allowed_origins = ["https://shop.acme.com"]
    secret_versions = { oauth-client-secret = "1" }
  }
  assert {
    condition     = output.url == null && output.oauth_redirect == "https://agent-connections-123456789012.europe-west1.run.app/api/agent/connections/google/callback"
    error_message = "There is no console, and Google still finds the way back."
  }
  assert {
    condition     = local.environment.ALLOWED_ORIGINS == "https://shop.acme.com"
    error_message = "Only your page may call the API."
  }
  assert {
    condition     = keys(google_pubsub_subscription.resume) == ["resume"] && google_pubsub_subscription.resume["resume"].filter == "NOT (attributes.agent = \"terminal\" OR attributes.agent = \"terminal-chat\" OR attributes.agent = \"planner\")"
    error_message = "There is one resume function, and it does not get the runs of functions that are deployed later."
  }
}

run "the_core_behind_a_domain" {
  variables {
    functions = ["core"]
    domain    = "agent.acme.com"
  }
  assert {
    condition     = google_compute_url_map.edge["this"].default_service == google_compute_backend_service.function["runs"].id
    error_message = "Without a console, the function runs answers all other paths."
  }
}

run "a_page" {
  variables {
    functions = ["page"]
  }
  assert {
    condition     = local.environment.WEB_FUNCTIONS == "actions,agui,allowlist,approvals-pending,approvals-resolve,audit,chat,chat-results,connections,files,run,runs,stream,threads,ui,web"
    error_message = "The console knows which functions it can call."
  }
}

run "functions_by_name" {
  variables {
    functions       = ["plans", "mcp"]
    devices         = true
    secret_versions = { oauth-client-secret = "1", vapid-key = "1" }
  }
  assert {
    condition     = keys(google_pubsub_subscription.webhook) == [""] && google_pubsub_subscription.webhook[""].push_config[0].push_endpoint == "${module.function["notify"].uri}/api/agent/notify"
    error_message = "Notifications bring the function that sends them."
  }
  assert {
    condition     = keys(google_pubsub_subscription.resume) == ["resume", "resume-plan"]
    error_message = "Plans bring the function that moves their runs."
  }
}
