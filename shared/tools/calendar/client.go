package calendar

import (
	"context"

	calendarapi "google.golang.org/api/calendar/v3"

	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/tools/internal/google"
	"github.com/countersign-run/countersign/shared/tools/internal/provider"
)

// scopes are what the tools need: who may make events may also list them.
var scopes = []string{calendarapi.CalendarEventsScope}

// client is what the tools act with.
type client struct{ google.Client }

func newClient(accounts provider.Accounts, o Options) client {
	return client{google.NewClient(accounts, o.Endpoint, o.Timeout)}
}

// service returns Google's client, acting as the call's user in the account for which the call was judged.
func (c client) service(ctx context.Context, call tool.Call) (*calendarapi.Service, error) {
	opts, err := c.Options(ctx, call)
	if err != nil {
		return nil, err
	}
	svc, err := calendarapi.NewService(ctx, opts...)
	if err != nil {
		return nil, fault.New(fault.Tool, fault.CodeInternal, "The calendar's client could not be made.").Because(err)
	}
	return svc, nil
}
