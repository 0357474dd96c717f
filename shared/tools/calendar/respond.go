package calendar

import (
	"cmp"
	"context"
	"strings"
	"time"
	"unicode"

	"github.com/google/jsonschema-go/jsonschema"
	calendarapi "google.golang.org/api/calendar/v3"

	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/clip"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/tools/internal/provider"
)

// MaxComment limits the comment of an answer, in octets.
const MaxComment = 1024

// RespondArgs are the arguments of calendar_respond.
type RespondArgs struct {
	EventID    string      `json:"eventId" jsonschema:"The event's id, as calendar_events_list returns it. The id of a series answers for all of its repetitions."`
	Answer     string      `json:"answer" jsonschema:"The user's answer."`
	Comment    string      `json:"comment,omitempty" jsonschema:"A note to the organizer and the other guests."`
	Invitation *Invitation `json:"invitation,omitempty"`
}

// Invitation is the invitation as the server has read it. A call answers it only if it still says the same.
type Invitation struct {
	Event     Args    `json:"event"` // without its guests
	Organizer string  `json:"organizer"`
	Answer    string  `json:"answer"` // the user's answer so far
	Repeats   repeats `json:"repeats,omitempty"`
}

// Responded is the result of calendar_respond.
type Responded struct {
	EventID  string `json:"eventId"`
	HTMLLink string `json:"htmlLink,omitempty"`
}

// answers are the answers with their words on the card.
var answers = map[string]string{"needsAction": "No answer yet", "accepted": "Accepted", "declined": "Declined",
	"tentative": "Maybe"}

// NewRespond returns the tool that answers invitations.
func NewRespond(accounts provider.Accounts, o Options) *tool.Tool {
	if o.Now == nil {
		o.Now = time.Now
	}
	r := &responder{newClient(accounts, o)}
	return tool.Define(tool.Def[RespondArgs, Responded]{
		Name: Respond,
		Description: "Answers an invitation in the user's own Google Calendar: accepts or declines it, or answers " +
			"maybe. The user sees the invitation and approves the answer first.",
		SideEffect: true,
		Scopes:     scopes,
		Place:      r.Place(scopes),
		Reads:      r.Reads,
		Refine:     refineRespond,
		Normalize:  normalizeRespond,
		Complete:   r.complete,
		Warn: func(_ context.Context, call tool.Call, a RespondArgs) ([]tool.Warning, error) {
			if a.Answer == "declined" {
				return nil, nil
			}
			return outsideHours(a.event(), call.Preferences.WorkingHours, o.Now()), nil
		},
		Revise: func(before, edited RespondArgs) RespondArgs {
			if edited.Invitation = before.Invitation; edited.EventID != before.EventID {
				edited.Invitation = nil
			}
			return edited
		},
		Changes: func(a RespondArgs) (RespondArgs, []tool.Change) {
			a.Invitation = nil // no text of the call
			return a, nil
		},
		Targets: targetsOfRespond,
		Pinned: func(a RespondArgs) any {
			a.Comment, a.Invitation = "", nil
			return a
		},
		Preview: previewRespond,
		Summary: func(a RespondArgs) string {
			return "Answered the invitation “" + titleOf(a.event()) + "”: " + strings.ToLower(answers[a.Answer]) + "."
		},
		Heading:   func(a RespondArgs) string { return "Invitation: " + titleOf(a.event()) },
		Link:      func(_ tool.Place, r Responded) string { return r.HTMLLink },
		Execute:   r.answer,
		Reconcile: r.settle,
		LookUp:    r.settle,
	})
}

func refineRespond(s *jsonschema.Schema) {
	p := s.Properties
	p["eventId"].Pattern, p["eventId"].MaxLength = eventIDPattern, jsonschema.Ptr(maxID)
	p["answer"].Enum = []any{"accepted", "declined", "tentative"}
	p["comment"].MaxLength = jsonschema.Ptr(MaxComment)
	p["invitation"] = &jsonschema.Schema{Type: "object", Description: "Leave it out. The server fills it in."}
}

func normalizeRespond(a RespondArgs) (RespondArgs, error) {
	switch {
	case len(a.Comment) > MaxComment:
		return a, fault.Invalid("comment", "%d bytes; the limit is %d", len(a.Comment), MaxComment)
	case strings.ContainsFunc(a.Comment, unicode.IsControl):
		return a, fault.Invalid("comment", "control characters are not allowed")
	}
	return a, nil
}

// event returns the event of the invitation, or an empty one before it is read.
func (a RespondArgs) event() Args {
	if a.Invitation == nil {
		return Args{}
	}
	return a.Invitation.Event
}

// targetsOfRespond returns the organizer, who gets the answer.
func targetsOfRespond(a RespondArgs) []tool.Target {
	if a.Invitation == nil {
		return nil
	}
	to := tool.Target{Kind: tool.TargetAddress, Value: a.Invitation.Organizer}.Normal()
	if to.Malformed() {
		to = tool.Target{Kind: targetGuest, Value: cmp.Or(a.Invitation.Organizer, "unknown")}
	}
	return []tool.Target{to}
}

func previewRespond(a RespondArgs) tool.Preview {
	v := view{Preview: tool.Preview{Title: map[string]string{"accepted": "Accept an invitation",
		"declined": "Decline an invitation", "tentative": "Answer maybe to an invitation"}[a.Answer]}}
	if in := a.Invitation; in == nil {
		v.AddField("Id", a.EventID)
	} else {
		v.AddLine("Event", cmp.Or(in.Event.Summary, "(no title)"))
		v.which(in.Repeats, false)
		v.ends("Starts", "Ends", in.Event)
		if in.Event.Location != "" {
			v.AddLine("Location", in.Event.Location)
		}
		v.AddAddresses("Organizer", []string{in.Organizer})
		v.AddField("Your answer was", cmp.Or(answers[in.Answer], "Unknown"))
	}
	v.AddField("Your answer becomes", answers[a.Answer])
	if a.Comment != "" {
		v.AddLine("Comment", a.Comment)
	}
	v.AddField("Who sees it", "Google e-mails the answer to the organizer; the other guests can see it")
	return v.Preview
}

// responder executes calls.
type responder struct{ client }

// complete reads the invitation.
func (r *responder) complete(ctx context.Context, call tool.Call, a RespondArgs) (RespondArgs, error) {
	svc, err := r.service(ctx, call)
	if err != nil {
		return a, err
	}
	ctx, cancel := context.WithTimeout(ctx, r.Timeout)
	defer cancel()
	ev, err := r.read(ctx, svc, a.EventID)
	if err != nil {
		return a, err
	}
	a.Invitation, err = invitationOf(ev)
	return a, err
}

// self returns the user among the guests, or nil.
func self(ev *calendarapi.Event) *calendarapi.EventAttendee {
	for _, at := range ev.Attendees {
		if at.Self {
			return at
		}
	}
	return nil
}

// invitationOf returns what the card shows of an invitation.
func invitationOf(ev *calendarapi.Event) (*Invitation, error) {
	me := self(ev)
	if me == nil || ev.Organizer == nil || ev.Organizer.Self {
		return nil, fault.New(fault.Policy, fault.CodeForbidden,
			"The user is not invited to this event by someone else, so there is nothing to answer.")
	}
	in := &Invitation{Event: seen(ev, ""), Organizer: clip.Text(ev.Organizer.Email, 254), Answer: me.ResponseStatus,
		Repeats: repeatsOf(ev)}
	in.Event.Attendees, in.Event.Description = nil, ""
	return in, nil
}

// answer sends the answer, if the invitation is still the one that the card showed.
func (r *responder) answer(ctx context.Context, call tool.Call, a RespondArgs) (Responded, error) {
	svc, err := r.service(ctx, call)
	if err != nil {
		return Responded{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, r.Timeout)
	defer cancel()
	ev, err := r.read(ctx, svc, a.EventID)
	if err != nil {
		return Responded{}, err
	}
	if changedBy(ev, call.ActionID) {
		return Responded{ev.Id, ev.HtmlLink}, nil
	}
	now, err := invitationOf(ev)
	switch {
	case err != nil:
		return Responded{}, err
	case a.Invitation == nil:
		return Responded{}, fault.New(fault.Policy, fault.CodeIntegrity,
			"The invitation was not shown. Nothing was answered.")
	}
	if what := a.Invitation.differences(now); len(what) > 0 {
		shown := changes(a.Invitation.Event, now.Event)
		a.Invitation = now
		return Responded{}, tool.AskAnew(a, fault.New(fault.Policy, fault.CodeStaleView,
			"The invitation has changed since you were shown it (%s), so nothing was answered. This is how it is now.",
			strings.Join(what, ", ")), shown...)
	}
	// With attendeesOmitted, a patch changes only the answer of its own guest.
	body := &calendarapi.Event{AttendeesOmitted: true, Attendees: []*calendarapi.EventAttendee{
		{Email: self(ev).Email, ResponseStatus: a.Answer, Comment: a.Comment, ForceSendFields: []string{"Comment"}}},
		ExtendedProperties: &calendarapi.EventExtendedProperties{
			Private: map[string]string{changeProperty: call.ActionID}}}
	done, err := r.send(ctx, svc, call, ev, body, "all")
	if err != nil {
		return Responded{}, err
	}
	return Responded{done.Id, done.HtmlLink}, nil
}

// differences names the parts in which two states of an invitation differ.
func (in *Invitation) differences(now *Invitation) []string {
	names := differences(in.Event, now.Event)
	if in.Organizer != now.Organizer {
		names = append(names, "organizer")
	}
	if in.Answer != now.Answer {
		names = append(names, "your answer")
	}
	return names
}

// settle determines the outcome by the mark that the answer leaves on the user's copy of the event.
func (r *responder) settle(ctx context.Context, call tool.Call, a RespondArgs) (tool.Verdict, Responded, string,
	error) {
	ev, v, reason, err := r.marked(ctx, call, a.EventID, "answered")
	if v != tool.Done {
		return v, Responded{}, reason, err
	}
	return v, Responded{ev.Id, ev.HtmlLink}, "", nil
}
