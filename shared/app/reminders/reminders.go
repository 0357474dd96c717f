// Package reminders is the part that sends users e-mails about approvals that have waited for a while.
package reminders

import (
	"context"
	"fmt"

	"github.com/countersign-run/countersign/shared/app"
	"github.com/countersign-run/countersign/shared/base/netguard"
	"github.com/countersign-run/countersign/shared/config"
	"github.com/countersign-run/countersign/shared/engine/records"
	"github.com/countersign-run/countersign/shared/notify/mailer"
	"github.com/countersign-run/countersign/shared/notify/reminder"
)

// Part sends through SMTP_URL if NOTIFY is mail.
var Part = app.Part{Name: "mail", Needs: config.Mail, Open: open}

func open(_ context.Context, b *app.Builder) error {
	cfg := b.Config
	if cfg.Notify != "mail" {
		return nil
	}
	// The server may be in the operator's own network.
	guard := netguard.New(netguard.Options{Private: true, Literal: true, Loopback: !cfg.OnCloudRun})
	m := &mailer.Mailer{From: cfg.NotifyFrom, Dial: guard.DialContext}
	if err := m.Server(cfg.SMTP.Reveal()); err != nil {
		return fmt.Errorf("SMTP_URL: %w", err)
	}
	b.Env.Reminders = &reminder.Reminders{Store: b.Store, Kept: &records.Records{Store: b.Store, Now: b.Now}, Mailer: m,
		From: cfg.NotifyFrom, Console: cfg.ConsoleURL}
	return nil
}
