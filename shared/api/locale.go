package api

import (
	"github.com/countersign-run/countersign/shared/agent/preference"
	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/base/timezone"
)

// localeBody has a request's fields for the user's locale and time zone. Clients send what their browser reports.
type localeBody struct {
	TimeZone *string `json:"timeZone"`
	Locale   *string `json:"locale"`
}

// locale validates the fields. A field that is absent or null becomes empty, and so does a time zone that browsers
// report but this server does not know.
func (b localeBody) locale() (r run.Locale, err error) {
	if b.TimeZone != nil && !timezone.Reported(*b.TimeZone) {
		if _, err := timezone.Load("timeZone", *b.TimeZone); err != nil {
			return r, err
		}
		r.TimeZone = *b.TimeZone
	}
	if b.Locale != nil {
		if r.Language, err = preference.Language("locale", *b.Locale); err != nil {
			return r, err
		}
	}
	return r, nil
}
