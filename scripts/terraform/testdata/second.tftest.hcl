# A list of functions in which the agent clerk has a resume function of its own: resume-clerk.

mock_provider "google" {
  mock_data "google_project" {
    defaults = { number = "123456789012" }
  }
}

variables {
  project_id      = "acme-prod"
  environment     = "prod"
  release         = "v1.2.3"
  archives        = "../../../dist"
  auth            = { issuer = "https://securetoken.google.com/acme-prod", audience = "acme-prod" }
  oauth_client_id = "123-abc.apps.googleusercontent.com"
  secret_versions = { chat-key = "1", oauth-client-secret = "1" }
  domain          = "agent.acme.com"
  alert_emails    = ["oncall@acme.com"]
}

run "a_second_resume_function" {
  assert {
    condition     = { for name, s in google_pubsub_subscription.resume : name => s.filter } == { resume = "NOT (attributes.agent = \"terminal\" OR attributes.agent = \"terminal-chat\" OR attributes.agent = \"planner\" OR attributes.agent = \"clerk\")", resume-clerk = "attributes.agent = \"clerk\"", resume-plan = "attributes.agent = \"planner\"", resume-terminal = "attributes.agent = \"terminal\" OR attributes.agent = \"terminal-chat\"" }
    error_message = "Each message goes to the function that moves its agent's runs, and to no other."
  }
  assert {
    condition     = alltrue([for name, s in google_pubsub_subscription.resume : s.topic == google_pubsub_topic.resume.id && s.name == "agent-${name}-push"])
    error_message = "All subscriptions are on the one topic."
  }
  assert {
    condition     = alltrue([for name, s in google_pubsub_subscription.resume : s.push_config[0].push_endpoint == module.function[name].uri && s.push_config[0].oidc_token[0].audience == module.function[name].uri])
    error_message = "Each subscription pushes to its own function, with its address as the audience."
  }
  assert {
    condition     = module.function["resume"].identity != module.function["resume-clerk"].identity && module.function["resume-clerk"].invoker == google_service_account.push.member && module.function["resume-clerk"].ingress == "ALLOW_INTERNAL_ONLY"
    error_message = "The second function is its own identity, and is called by Pub/Sub alone."
  }
  assert {
    condition     = { for name, m in google_pubsub_subscription_iam_member.dead : m.subscription => m.role } == { for s in values(google_pubsub_subscription.resume) : s.name => "roles/pubsub.subscriber" }
    error_message = "The dead letters of all are moved."
  }
  assert {
    condition     = [local.own["resume"].PUSH_SUBSCRIPTION, local.own["resume-clerk"].PUSH_SUBSCRIPTION] == ["projects/acme-prod/subscriptions/agent-resume-push", "projects/acme-prod/subscriptions/agent-resume-clerk-push"]
    error_message = "Each function takes the messages of its own subscription."
  }
  assert {
    condition     = strcontains(google_monitoring_alert_policy.this["resume-lag"].conditions[0].condition_threshold[0].filter, "subscription_id=one_of(\"agent-resume-push\",\"agent-resume-clerk-push\",\"agent-resume-plan-push\",\"agent-resume-terminal-push\",\"agent-sweep-push\")")
    error_message = "It is told that runs wait for any of them."
  }
}
