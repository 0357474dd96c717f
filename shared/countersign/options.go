package countersign

import (
	"context"
	"log/slog"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/countersign-run/countersign/shared/agent/policy"
	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/store/blob"
)

// Options configure an agent. The zero value is an agent without tools. It keeps its sessions in memory, and uses the
// model that the environment configures.
type Options struct {
	// Name distinguishes the agents of one store: up to 28 lower-case letters, digits and hyphens. An agent continues
	// only the sessions that have its name. The default is agent.
	Name string

	Instructions string // the agent's instructions, unless InstructionsFunc is set
	// InstructionsFunc returns the instructions. It is called once for each session and process (a process remembers
	// 10,000 sessions). A run keeps the text it began with, even if another process continues it.
	InstructionsFunc func(ctx context.Context, s *SessionContext) (string, error)

	Tools  []*Tool  // from [DefineTool], [DefineEffect] and package mcp
	Skills []Skills // guidance that the model reads when a task needs it
	// Memory gives the model the tools remember and forget for short facts about the user, at most 200. Each call is an
	// effect that needs approval. The model reads the user's notes ([Agent.Notes]) before each prompt.
	Memory bool

	Model string // the model's name; empty: the provider's default
	// FallbackModels are models of the same service, at most 5. They are asked in this order while the model is
	// overloaded or its quota is used up, after the retries and before any text of the answer was shown. The run then
	// stays with the model that answered. Nil: GEMINI_FALLBACK_MODELS, if the environment configures the service.
	FallbackModels []string
	// Models are models of the same service, at most 20, that [Session.WithModel] can choose. Nil: GEMINI_MODELS, if
	// the environment configures the service.
	Models   []string
	Thoughts bool     // request what the model thinks, for the event [Thought]
	Provider Provider // the service to call; nil: the one that the environment configures, see [Gemini]

	Dir      string   // the folder of SessionContext.FS, in which commands run; empty: the working directory
	Commands []string // what SessionContext.Shell can run: "git log" with harmless options, "sh -c ..." with any words

	LogLevel LogLevel     // how much the agent logs; empty: silent
	Logger   *slog.Logger // receives the log, with likely secrets redacted; nil: stderr
	Debug    bool         // log at the level debug, with the size of each model request

	// Store keeps the sessions. Nil keeps them in memory. [Agent.Close] does not close it.
	Store store.Store

	// Files keeps the bytes of attachments that have more than 1.5 MiB together, such as folder.New(dir) of package
	// shared/store/blob/folder. Nil keeps them in memory if Store is nil too, and otherwise refuses such attachments.
	Files blob.Store

	// DecisionKeys sign each decision that permits something, so that write access to Store is not enough to approve:
	// the signature is checked right before the effect. Each key is 32 random bytes; the first one signs, and the
	// signatures of all count. Keep them outside Store, and give the same keys to each process. A decision without a
	// signature is asked for again; one with a wrong signature fails with the code forged_decision. Nil: decisions
	// are not signed.
	DecisionKeys [][]byte

	// Approve is called with each call that needs approval. It is called after the approval is stored, on the
	// goroutine that sends or ranges over the stream. It can take as long as it likes: a process that is killed
	// meanwhile loses nothing. An error from it ends the stream, and the call still waits. Nil: [Later].
	Approve func(ctx context.Context, a Approval) (Decision, error)
	Effects Effects // how effects that need approval are handled
	Policy  Policy  // the addresses that effects may reach; applies before Approve and Effects
	Budget  Budget  // the limits of one run
	Hooks   Hooks   // functions around the model and the tools

	// CompressionThreshold is the share of the model's context window above which a session is compressed before the
	// next request: results of tools are cut, and then older turns are replaced by a summary. 0 means 0.5; -1 turns
	// compression off.
	CompressionThreshold float64

	MaxModelCalls int // model calls in one run, 1 to 50; the last one has no tools; 0: 50
	// MaxOutputTokens is the limit for one answer of the model, thoughts included, and at most 1048576. 0: the
	// service's own limit.
	MaxOutputTokens int

	ToolTimeout time.Duration // the limit of one tool call, 1 s to 10 min; 0: 2 min
	ApprovalTTL time.Duration // how long a call waits for its decision, at most 30 days; 0: 7 days
	Deadline    time.Duration // the longest duration of a run, waiting included, at most 90 days; 0: 7 days

	// TracerProvider creates OpenTelemetry spans. Each call that advances a run has a span invoke_agent, with one span
	// chat for each request to the model and one span execute_tool for each tool call. Their attributes follow the
	// semantic conventions for generative AI. The conversation ID is the session's ID. No span has content. If
	// another call or process continues a run, its span links to the run's first span. Nil: no spans.
	TracerProvider trace.TracerProvider
}

// Effects selects how an agent's effects are approved.
type Effects string

// The values of Effects.
const (
	AskFirst    Effects = Effects(policy.AskEffects)  // effects wait for approval; the zero value
	AutoApprove Effects = Effects(policy.AutoApprove) // effects run at once; the audit marks each one
	NoEffects   Effects = Effects(policy.NoEffects)   // effects are denied, and the model gets the reason
)

// Policy lists the addresses that effects may reach: an address (a@example.com), a domain (example.com), or all
// domains below one (*.example.com). It is applied to the addresses from EffectConfig.Targets.
type Policy struct {
	NeverTo []string
	OnlyTo  []string // empty: every address that NeverTo does not list
}

// The defaults and limits of Options.
const (
	defaultModelCalls  = 50
	defaultThreshold   = 0.5
	defaultToolTimeout = 2 * time.Minute
	defaultWait        = 7 * 24 * time.Hour
	maxToolTimeout     = 10 * time.Minute
	modelTimeout       = 5 * time.Minute // of one model call, retries included
)

// maxFallbacks limits Options.FallbackModels.
const maxFallbacks = 5

// maxModels limits Options.Models.
const maxModels = 20
