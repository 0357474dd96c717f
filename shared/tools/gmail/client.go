package gmail

import (
	"context"

	gmailapi "google.golang.org/api/gmail/v1"

	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/tools/internal/google"
	"github.com/countersign-run/countersign/shared/tools/internal/provider"
)

// Service names the service in the tools' quotas.
const Service = "Gmail"

// The most units that one call of a tool takes of the project's quota of a minute: a request that sends takes 100
// units, one that creates a draft or reads a conversation 10, other requests 5, and the profile and labels 1
// (https://developers.google.com/workspace/gmail/api/reference/quota). The completion of arguments and the search for
// an outcome are not counted, nor the check for a later e-mail before an answer, nor the 1 to 10 units for the mail
// that a mail answers, for an alias and for each file.
const (
	sendUnits   = 10 + 100 + 5 // a draft is created, sent and read back
	draftUnits  = 1 + 10       // the state of the mailbox before
	searchUnits = 5 + MaxFound*5
	readUnits   = 10 + MaxRead*5
	modifyUnits = 1 + MaxModified*(5+5) // each e-mail is looked at before

	// LeastUnits is the least of them.
	LeastUnits = draftUnits
)

func units(n int) tool.Quota { return tool.Quota{Service: Service, Units: n} }

// client makes the requests of the tools.
type client struct{ google.Client }

func newClient(accounts provider.Accounts, o Options) client {
	return client{google.NewClient(accounts, o.Endpoint, o.Timeout)}
}

// service returns Google's client, acting as the call's user in the account for which the call was judged.
func (c client) service(ctx context.Context, call tool.Call) (*gmailapi.Service, error) {
	opts, err := c.Options(ctx, call)
	if err != nil {
		return nil, err
	}
	svc, err := gmailapi.NewService(ctx, opts...)
	if err != nil {
		return nil, fault.New(fault.Tool, fault.CodeInternal, "The Gmail client could not be created.").Because(err)
	}
	return svc, nil
}

// serviceFor is service for requests with the e-mail of the call: Gmail's answers are larger if the e-mail has files.
func (c client) serviceFor(ctx context.Context, call tool.Call, a Args) (*gmailapi.Service, error) {
	if len(a.Attachments) > 0 {
		c = c.large()
	}
	return c.service(ctx, call)
}

// large returns a client that reads answers with files.
func (c client) large() client {
	c.MaxAnswer = maxWithFile
	return c
}
