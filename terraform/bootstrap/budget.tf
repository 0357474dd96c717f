# The budget warns before the bill comes. It does not stop anything.

resource "google_monitoring_notification_channel" "budget" {
  for_each = var.budget == null ? toset([]) : var.budget.emails

  project      = var.project_id
  display_name = each.value
  type         = "email"
  labels = {
    email_address = each.value
  }
  depends_on = [google_project_service.this]
}

resource "google_billing_budget" "monthly" {
  for_each = var.budget == null ? {} : { this = var.budget }

  billing_account = each.value.billing_account
  display_name    = "${var.project_id} monthly"
  budget_filter {
    projects = ["projects/${var.project_id}"]
  }
  amount {
    specified_amount {
      currency_code = each.value.currency
      units         = each.value.monthly
    }
  }
  dynamic "threshold_rules" {
    for_each = [0.5, 0.9, 1.0]
    content {
      threshold_percent = threshold_rules.value
    }
  }
  threshold_rules {
    threshold_percent = 1.2
    spend_basis       = "FORECASTED_SPEND"
  }
  dynamic "all_updates_rule" {
    for_each = length(each.value.emails) > 0 ? [1] : []
    content {
      monitoring_notification_channels = [for c in google_monitoring_notification_channel.budget : c.id]
    }
  }

  depends_on = [google_project_service.this]
}
