// Package reminders is the part of the functions that mail people what has waited for their decision for a while.
package reminders

import (
	"fmt"
	"time"

	"github.com/countersign-run/countersign/shared/app"
	"github.com/countersign-run/countersign/shared/config"
	"github.com/countersign-run/countersign/shared/journal"
	"github.com/countersign-run/countersign/shared/mailer"
	"github.com/countersign-run/countersign/shared/netguard"
	"github.com/countersign-run/countersign/shared/records"
	"github.com/countersign-run/countersign/shared/reminder"
	"github.com/countersign-run/countersign/shared/store"
)

// Part sends by SMTP_URL, where NOTIFY is mail.
var Part = app.Part{Needs: config.Mail, Link: func(c *app.Clients) { c.Reminders = open }}

func open(cfg config.Config, st store.Store, now func() time.Time) (journal.Reminders, error) {
	if cfg.Notify != "mail" {
		return nil, nil
	}
	// its server may be in the operator's own network
	guard := netguard.New(netguard.Options{Private: true, Literal: true, Loopback: !cfg.OnCloudRun})
	m := &mailer.Mailer{From: cfg.NotifyFrom, Dial: guard.DialContext}
	if err := m.Server(cfg.SMTP.Reveal()); err != nil {
		return nil, fmt.Errorf("SMTP_URL: %w", err)
	}
	return &reminder.Reminders{Store: st, Kept: &records.Records{Store: st, Now: now}, Mailer: m, From: cfg.NotifyFrom,
		Console: cfg.ConsoleURL}, nil
}
