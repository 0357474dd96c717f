package calendar

import (
	"context"

	calendarapi "google.golang.org/api/calendar/v3"

	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/tools/internal/google"
	"github.com/countersign-run/countersign/shared/tools/internal/provider"
)

// scopes are the scopes that the tools need. The scope for creating events also permits listing them.
var scopes = []string{calendarapi.CalendarEventsScope}

// client makes the requests of the tools.
type client struct{ google.Client }

func newClient(accounts provider.Accounts, o Options) client {
	return client{google.NewClient(accounts, o.Endpoint, o.Timeout)}
}

// service returns Google's client for the call's user and the account of the call.
func (c client) service(ctx context.Context, call tool.Call) (*calendarapi.Service, error) {
	opts, err := c.Options(ctx, call)
	if err != nil {
		return nil, err
	}
	svc, err := calendarapi.NewService(ctx, opts...)
	if err != nil {
		return nil, fault.New(fault.Tool, fault.CodeInternal, "The calendar client could not be created.").Because(err)
	}
	return svc, nil
}
