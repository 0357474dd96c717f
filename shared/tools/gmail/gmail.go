// Package gmail provides the tools of the mailbox of the run's owner. gmail_search (search.go) finds e-mails and
// gmail_read (read.go) reads them; both return text from strangers. gmail_send sends one e-mail, after the owner has
// approved it. gmail_draft (leave.go) takes the same arguments, leaves the e-mail among the drafts, and sends nothing.
// gmail_modify (modify.go) changes the labels of e-mails.
//
// In draft mode, the approved message is saved as a draft, the draft's id is recorded, and the draft is sent. A draft
// can be sent once, so whether it still exists settles most crashes (reliability §0, findings 1 to 3). In direct mode,
// the message is sent in one call with a smaller scope, and a person has to settle a call whose outcome was lost.
package gmail

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
	gmailapi "google.golang.org/api/gmail/v1"

	"github.com/countersign-run/countersign/shared/agent/preference"
	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/visible"
	"github.com/countersign-run/countersign/shared/tools/given"
	"github.com/countersign-run/countersign/shared/tools/internal/provider"
)

// The tools' names for the model.
const (
	Name   = "gmail_send"
	Search = "gmail_search"
	Read   = "gmail_read"

	LeaveDraft = "gmail_draft"
	Modify     = "gmail_modify"
)

// Mode is how a message is sent.
type Mode string

// The values of Mode.
const (
	Draft  Mode = "draft"  // create a draft, then send it: scope gmail.compose, exactly once
	Direct Mode = "direct" // send in one call: scope gmail.send; a person settles an unclear outcome
)

// Options configures the tools. The zero value is draft mode with Google.
type Options struct {
	Mode     Mode
	Endpoint string        // URL of another Gmail API, with its trailing slash; empty means Google's
	Timeout  time.Duration // of one call; 0 means 20 s
	// InferSent treats a draft that no longer exists as sent, if the mailbox cannot be searched for the message. The
	// owner may also have deleted it, so the default is false: a person is asked.
	InferSent bool
	Reads     bool // whether e-mails can be read, so that they can be answered and forwarded
	// Files are the files that users attached in their conversations. Nil: none can leave with an e-mail.
	Files *given.Files
	// Markdown converts HTML. If it is nil, as in a function that reads no e-mail, gmail_read returns HTML as it is.
	Markdown Converter
}

// Args are the tool's arguments.
type Args struct {
	To        []string `json:"to" jsonschema:"Bare e-mail addresses of the recipients, without names."`
	Cc        []string `json:"cc,omitempty" jsonschema:"Bare addresses of those who get a copy."`
	Bcc       []string `json:"bcc,omitempty" jsonschema:"Bare addresses of those who get a copy that the others do not see."`
	Subject   string   `json:"subject" jsonschema:"One line."`
	Body      string   `json:"body" jsonschema:"The whole message as plain text."`
	HTMLBody  string   `json:"htmlBody,omitempty" jsonschema:"The same message as HTML. Leave it out unless HTML is asked for."`
	ThreadID  string   `json:"threadId,omitempty" jsonschema:"Gmail's id of the conversation that this answers."`
	InReplyTo string   `json:"inReplyTo,omitempty" jsonschema:"The Message-ID, with its angle brackets, that this answers."`
	Signature string   `json:"signature,omitempty" jsonschema:"Leave it out. The server fills it in."`
	// Attachments exist only with Options.Files or Options.Reads.
	Attachments []Enclosure `json:"attachments,omitempty" jsonschema:"Files that leave with the mail. A forwarded mail keeps its own."`
	// These arguments exist only with Options.Reads.
	From    string   `json:"from,omitempty" jsonschema:"One of the account's verified send-as addresses, if the user asks for another sender."`
	ReplyTo *Reply   `json:"replyTo,omitempty" jsonschema:"To answer a mail: leave out to, cc, threadId and inReplyTo; they and the subject come from that mail, and its text is quoted below yours."`
	Forward *Forward `json:"forward,omitempty" jsonschema:"To forward a mail: its text follows yours, and the subject comes from it."`
	Origin  *Origin  `json:"origin,omitempty" jsonschema:"Leave it out. The server fills it in."`
}

// Reply names the e-mail that the new mail answers.
type Reply struct {
	MessageID string `json:"messageId" jsonschema:"Gmail's id of the mail, as gmail_search returns it."`
	All       bool   `json:"all,omitempty" jsonschema:"Whether everyone who got the mail gets the answer too."`
}

// Forward names the e-mail that the new mail forwards.
type Forward struct {
	MessageID          string `json:"messageId" jsonschema:"Gmail's id of the mail, as gmail_search returns it."`
	WithoutAttachments bool   `json:"withoutAttachments,omitempty" jsonschema:"Whether to leave out the mail's attachments."`
}

// Sent is the tool's result.
type Sent struct {
	MessageID string `json:"messageId,omitempty"` // Gmail's id of the sent message; absent if Inferred
	ThreadID  string `json:"threadId,omitempty"`
	Inferred  bool   `json:"inferred,omitempty"` // whether the draft's absence is the only evidence that it was sent
	Proof     string `json:"proof,omitempty"`    // whether the sent message was verified: ReadBack or NotReadBack
}

// The values of Sent.Proof.
const (
	ReadBack    = "sent as approved, and read back"
	NotReadBack = "sent as approved, not read back" // the scopes do not allow reading, or Gmail did not answer
)

// New returns the tool that sends. It panics if the mode is unknown.
func New(accounts provider.Accounts, o Options) *tool.Tool {
	s := newSender(accounts, o)
	d := composing[Sent](s, o)
	d.Name = Name
	d.Description = "Sends one e-mail from the user's own Gmail account. The user sees it in full and " +
		"approves it first."
	d.Preview, d.Summary, d.Heading, d.Link, d.LookUp = preview, summary, heading, link, s.lookUp
	d.Quota = units(sendUnits)
	if s.origins != nil {
		d.Preconditions = s.newest
	}
	switch cmp.Or(o.Mode, Draft) {
	case Draft:
		d.Scopes = []string{gmailapi.GmailComposeScope}
		d.Prepare, d.Execute, d.Reconcile = s.createDraft, s.sendDraft, s.reconcileDraft
	case Direct:
		d.Scopes = []string{gmailapi.GmailSendScope}
		d.Execute, d.Reconcile = s.sendDirectly, s.reconcileDirect
	default:
		panic(fmt.Sprintf("gmail.New: no mode %q", o.Mode))
	}
	d.Place = s.Place(d.Scopes)
	return tool.Define(d)
}

func newSender(accounts provider.Accounts, o Options) *sender {
	s := &sender{client: newClient(accounts, o), inferSent: o.InferSent, files: o.Files}
	if o.Reads {
		s.origins = &reader{s.client, o.Markdown}
	}
	return s
}

// composing returns the common parts of the tools that write an e-mail: the arguments, and all of their checks.
func composing[Out any](s *sender, o Options) tool.Def[Args, Out] {
	d := tool.Def[Args, Out]{
		SideEffect: true,
		Refine:     func(schema *jsonschema.Schema) { refine(schema, o) },
		Was:        func(schema *jsonschema.Schema) { drop(schema, "signature") },
		Normalize:  normalize,
		Bare:       withoutFacts,
		Complete:   s.complete,
		Changes:    withoutSignature,
		Revise:     revise,
		Targets:    targets,
		Pinned:     pinned,
		Reads:      s.Reads,
	}
	return d
}

// link returns the address of the sent message in Gmail's pages. It works for any of the reader's signed-in accounts.
func link(in tool.Place, s Sent) string {
	if s.MessageID == "" {
		return ""
	}
	return "https://mail.google.com/mail/?" + url.Values{"authuser": {in.Name}}.Encode() + "#all/" +
		url.PathEscape(s.MessageID)
}

// pinned returns an e-mail without its subject and its words, and without those of the e-mail that it answers or
// forwards.
func pinned(a Args) any {
	a.Subject, a.Body, a.HTMLBody, a.Signature = "", "", "", ""
	if a.Origin != nil {
		of := *a.Origin
		of.Subject, of.Quote = "", ""
		a.Origin = &of
	}
	return a
}

func refine(s *jsonschema.Schema, o Options) {
	p := s.Properties
	if !o.Reads {
		drop(s, "from", "replyTo", "forward", "origin")
	} else {
		refineOrigin(s)
	}
	refineEnclosures(s, o)
	p["to"].MinItems = jsonschema.Ptr(1)
	for _, list := range []string{"to", "cc", "bcc"} {
		p[list].MaxItems = jsonschema.Ptr(MaxRecipients)
		p[list].Items.MaxLength = jsonschema.Ptr(254)
	}
	p["subject"].MaxLength = jsonschema.Ptr(MaxSubject)
	p["body"].MinLength = jsonschema.Ptr(1)
	p["body"].MaxLength = jsonschema.Ptr(MaxBody)
	p["htmlBody"].MaxLength = jsonschema.Ptr(MaxBody)
	p["signature"].MaxLength = jsonschema.Ptr(preference.MaxSignature)
	p["threadId"].MaxLength = jsonschema.Ptr(32)
	p["inReplyTo"].MaxLength = jsonschema.Ptr(250)
	if o.Reads {
		p["to"].MinItems = nil
	}
}

// drop removes properties from a schema.
func drop(s *jsonschema.Schema, names ...string) {
	for _, name := range names {
		delete(s.Properties, name)
	}
	s.PropertyOrder = slices.DeleteFunc(s.PropertyOrder, func(name string) bool { return s.Properties[name] == nil })
}

// refineEnclosures leaves out the files that no call can name.
func refineEnclosures(s *jsonschema.Schema, o Options) {
	if !o.Reads && o.Files == nil {
		drop(s, "attachments")
		return
	}
	all := s.Properties["attachments"]
	all.MaxItems = jsonschema.Ptr(MaxEnclosures)
	drop(all.Items, "is")
	if !o.Reads {
		drop(all.Items, "messageId", "part")
	}
	if o.Files == nil {
		drop(all.Items, "file")
	}
	for name, most := range map[string]int{"file": 255, "messageId": 32, "part": 100} {
		if p := all.Items.Properties[name]; p != nil {
			p.MaxLength = &most
		}
	}
}

// refineOrigin bounds the arguments that name and describe another e-mail. A reply has no recipients of its own.
func refineOrigin(s *jsonschema.Schema) {
	s.Required = slices.DeleteFunc(s.Required, func(name string) bool { return name == "to" || name == "subject" })
	s.Properties["from"].MaxLength = jsonschema.Ptr(254)
	for _, name := range []string{"replyTo", "forward", "origin"} {
		s.Properties[name].Properties["messageId"].MaxLength = jsonschema.Ptr(32)
	}
}

// revise drops the HTML version if the user has edited only the text: most mail programs would show the old words.
func revise(before, edited Args) Args {
	if edited.Body != before.Body && edited.HTMLBody == before.HTMLBody {
		edited.HTMLBody = ""
	}
	edited.Attachments = keepEnclosed(before.Attachments, edited.Attachments)
	return edited
}

// recipients returns all addresses, including those of copies, without duplicates.
func (a Args) recipients() []string { return slices.Concat(a.To, a.Cc, a.Bcc) }

// targetMail is the kind of a target that is an e-mail of the account, by Gmail's ID. The new mail quotes or forwards
// it.
const targetMail tool.TargetKind = "mail"

// targetFile is the kind of a file that leaves with an e-mail.
const targetFile tool.TargetKind = "file"

// targetSender is the kind of an address from which an e-mail leaves instead of the account's own.
const targetSender tool.TargetKind = "sender"

// targets returns the recipients. Another sender is a target too: the card of an always-allowed address showed the
// account's own. If the text of another e-mail goes to people who did not send it, that e-mail is a target too, so that
// no always-allowed address covers the call: the model may never have read the text. So is each file.
func targets(a Args) []tool.Target {
	all := tool.Addresses(a.recipients())
	if a.From != "" {
		all = append(all, tool.Target{Kind: targetSender, Value: a.From})
	}
	if a.Forward != nil {
		all = append(all, tool.Target{Kind: targetMail, Value: a.Forward.MessageID})
	}
	if a.ReplyTo != nil && (a.Origin == nil || a.Origin.redirected()) {
		all = append(all, tool.Target{Kind: targetMail, Value: a.ReplyTo.MessageID})
	}
	for _, e := range a.Attachments {
		all = append(all, e.target())
	}
	return all
}

// summary is shown in the thread, which only its owner can read.
func summary(a Args) string {
	subject, _ := visible.Line(a.Subject)
	return fmt.Sprintf("Sent “%s” to %s.", subject, strings.Join(a.recipients(), ", "))
}

// heading names one recipient of the e-mail, and the number of the others.
func heading(a Args) string {
	all := a.recipients()
	switch len(all) {
	case 0: // an answer whose recipients were not derived, which is never sent
		return "Mail"
	case 1:
		return "Mail to " + all[0]
	}
	return fmt.Sprintf("Mail to %s and %d more", all[0], len(all)-1)
}

// sender executes calls.
type sender struct {
	client
	inferSent bool
	files     *given.Files // nil if an e-mail has no files of the conversation
	origins   *reader      // reads the e-mails that are answered or forwarded; nil if e-mails cannot be read
}
