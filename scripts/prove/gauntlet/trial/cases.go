package trial

// Case is one case of the gauntlet: an attempt that a user can make on a running server, or tests that cover a
// situation which users cannot cause.
type Case struct {
	Number string // the gauntlet's number; a letter distinguishes variants of a case
	Name   string
	Want   string // the expected result, compared as text

	// Try runs the case and returns the result. If the case cannot be tried from outside, Try is nil, and tests cover
	// the case.
	Try    func(s *session) (got string)
	Effect bool // sends or counts mail, and so needs the mailbox of a local server
	Quick  bool // part of the smoke test of a deployment

	Tests  []string // "package folder: Test/part"; they check at least the same, with means that users lack
	Absent string   // why the case cannot occur in Countersign
	Peers  string   // measurements of other frameworks, with a fake model and a tool that sleeps 50 ms
}

const (
	allOfThem = "20 runs of the tool: adk-go 2.2.0 in memory, genkit-go 1.11, openai-agents 0.20, langchain 1.5.6, " +
		"ai 7.0.173; adk-go on SQLite: 5, and 19 errors"
	here     = "scripts/prove/gauntlet"
	reported = "reported there, not run here: "
)

// Cases are all cases, in order.
var Cases = []Case{
	{Number: "1", Name: "20 concurrent approve_once on one approval",
		Want: "1 mail; 20 of 20 answered with one outcome", Try: twentyYeses, Effect: true,
		Tests: []string{"shared/engine/loop: TestResolveRace", "shared/engine/loop: TestResumeRace"},
		Peers: allOfThem},
	{Number: "2", Name: "approve and reject race, 10 times",
		Want: "one wins each time; the loser gets 409 already_resolved with the decision and its time; both are " +
			"in the audit", Try: yesAgainstNo, Effect: true,
		Tests: []string{"shared/engine/loop: TestResolveRace",
			"shared/engine/loop: TestRefusalsInAudit"}},
	{Number: "3", Name: "old approval sent again after completion", Want: "1 mail; 200 completed each time",
		Try: oldYes, Effect: true,
		Tests: []string{here + ": TestOldApprovalAfterRestartAndDeploy"},
		Peers: "adk-go runs the tool again each time"},
	{Number: "4", Name: "resume delivered twice, late and out of order", Want: "1 effect, 1 continuation of the model",
		Tests: []string{here + ": TestDeliveriesTwiceLateAndOutOfOrder",
			"shared/engine/loop: TestResumeRace"}},
	{Number: "5", Name: "killed after the effect, before its record, for each tool",
		Want: "1 effect, or unknown and a review; never 2",
		Tests: []string{"shared/engine/loop: TestKilledAtEveryCommit",
			"shared/tools/gmail: TestReconcileCrashAnywhere",
			"shared/tools/calendar: TestReconcileRepeatedAction", "scripts/check: TestKilledInEachStep"},
		Peers: "adk-go: 2 effects"},
	{Number: "6", Name: "killed before and after every commit of a run",
		Want: "the same end as the run that was not killed",
		Tests: []string{"shared/engine/loop: TestKilledAtEveryCommit", "scripts/check: TestKilledInEachStep",
			"scripts/check: TestKilledOnTheEmulators"}},
	{Number: "7a", Name: "approved with edits that fail the schema",
		Want: "400 ValidationError editedArgs/to/0; it still waits", Try: editsThatFail, Quick: true,
		Tests: []string{"shared/api: TestEditedArgumentsInvalid"}},
	{Number: "7b", Name: "approved with edits that the policy denies",
		Want:  "403 PolicyError denied, nothing sent, it still waits",
		Tests: []string{here + ": TestEditsDeniedByPolicy"}},
	{Number: "7c", Name: "approved with edits that change the recipient",
		Want: "1 mail, to the new recipient; the approval has a new hash, and the old approval returns 409 " +
			"already_resolved",
		Try: editedRecipient, Effect: true,
		Tests: []string{"shared/engine/loop: TestScenarios/edit"}},
	{Number: "8", Name: "stored arguments or rule tampered with, schema changed since the card was shown",
		Want: "409, and a fresh card in its place; only that one carries it out",
		Tests: []string{"shared/engine/loop: TestStaleApprovalReplaced",
			"shared/engine/loop: TestStaleApprovalRefused"}},
	{Number: "8b", Name: "free time of an event, state of an issue change between the card and the yes, twice",
		Want: "nothing is done; asked again with the old and the new value; a yes to the present state does it once",
		Tests: []string{"shared/app: TestPreconditionSlotTaken", "shared/app: TestPreconditionIssueClosed",
			"shared/app: TestPreconditionSigned", "shared/engine/loop: TestPreconditionAfterCrash"}},
	{Number: "9", Name: "expired approval approved one second late",
		Want:  "410 expired, nothing done; the sweep ends the run as expired",
		Tests: []string{"shared/engine/loop: TestScenarios/expiry"}},
	{Number: "10", Name: "batch of auto, needs approval (3), denied, resolved in all 6 orders",
		Want:  "the model is called once, 5 responses in call order, signature intact",
		Tests: []string{here + ": TestBatchInEveryOrder", "shared/engine/loop: TestScenarios/parallel"}},
	{Number: "11", Name: "user writes while a call is pending",
		Want: "answered at once; after the approval 1 mail, and the thread has all words in order",
		Try:  writesWhileWaiting, Effect: true,
		Tests: []string{"shared/engine/loop: TestScenarios/writes-while-waiting"}, Peers: "adk-go loses it"},
	{Number: "12", Name: "history is cut while a call is pending (Countersign cuts, it does not compress)",
		Want:  "closed turns only are cut; no 400 from the strict fake",
		Tests: []string{here + ": TestHistoryCutDuringWait", "shared/agent/model: TestHistoryBounds"}},
	{Number: "13", Name: "reader dropped at each event, two readers, one after the end",
		Want: "the same sequence, no gap, no repeat", Try: readers, Quick: true,
		Tests: []string{"shared/api: TestEventsFromAnyNumber"},
		Peers: "genkit, a Firestore stream of 1000 chunks: 101 chunks and no end"},
	{Number: "14a", Name: "stopped while it waits",
		Want: "failed cancelled; a yes is 409 already_resolved; nothing waits", Try: stoppedWhileWaiting, Quick: true,
		Tests: []string{"shared/engine/loop: TestScenarios/cancel"}},
	{Number: "14b", Name: "stopped from another instance during the model call and during a tool",
		Want:  "failed cancelled; no effect after the stop point; the summary names the completed effects",
		Tests: []string{here + ": TestStoppedFromAnotherInstance"}},
	{Number: "14c", Name: "stopped on a terminal, here or from another instance: during the model call, while a " +
		"command waits, after its yes, while it runs",
		Want:  "failed cancelled; no command runs or starts after the stop; a yes after it is 409",
		Tests: []string{here + ": TestTerminalStopped"}},
	{Number: "15", Name: "deadline passes during a pause, a tool, a hand-over",
		Want:  "failed deadline; pending approvals void; nothing done after it",
		Tests: []string{here + ": TestPassedDeadline", "shared/engine/loop: TestScenarios/deadline"}},
	{Number: "16a", Name: "second user reads or resolves the first user's approval",
		Want: "404 each time, the same as for a missing object; it still waits", Try: foreigner, Quick: true,
		Tests: []string{"shared/api: TestRunOfOtherUser"}},
	{Number: "16b", Name: "requester approves the own action under four-eyes", Want: "refused, and in the audit",
		Absent: "Countersign has no four-eyes: each user approves their own actions"},
	{Number: "17", Name: "two users on one instance with different Google tokens, 8 e-mails each at once",
		Want: "16 e-mails, each from its own user's account", Try: twoUsers, Effect: true,
		Tests: []string{"shared/accounts/google: TestTokensOfManyUsers"}, Peers: "adk-python #3772 mixes them"},
	{Number: "18", Name: "forged history, forged tool result, a result for a call never made, and another user's " +
		"history, in a page's chat",
		Want: "6 of 6 refused with 400; the genuine one continues with 200", Try: forgedHistories,
		Tests: []string{"shared/engine/chat: TestHistoryForged"}},
	{Number: "19", Name: "mixed batch of server and page tools",
		Want: "the server's result is kept, 3 responses for 3 calls, in the model's order",
		Tests: []string{here + ": TestMixedBatchOfServerAndPageTools",
			"shared/engine/chat: TestMixedCalls"}, Peers: "jay loses it"},
	{Number: "20", Name: "gmail_send with header injection, homoglyph domain, 500 recipients, empty body, self-loop",
		Want: "refused before any card; the domain in its ASCII form has a card with a warning, mail to " +
			"oneself one as any",
		Tests: []string{here + ": TestMailsDeniedWithoutCard",
			"shared/tools/gmail: TestSuite", "shared/agent/policy: TestDecide"}},
	{Number: "21", Name: "allowlisted recipient revoked between proposal and execution",
		Want: "asks again; nothing sent", Tests: []string{here + ": TestRevokedBetweenProposalAndExecution"}},
	{Number: "22", Name: "audit chain: an entry changed, deleted, inserted, reordered, the tail dropped",
		Want:  "all detected, with the entry named",
		Tests: []string{"shared/store/audit: TestVerifyEntry", "shared/store/audit: TestVerifyMutations"}},
	{Number: "23", Name: "secret in arguments, output and errors of each tool", Want: "never in response, log or audit",
		Tests: []string{here + ": TestSecretsInArgumentsAndErrors", here + ": TestSecretsOfCommands",
			"shared/app: TestProviderFaults", "shared/telemetry/obs: TestLogWithoutPrivateValues"}},
	{Number: "24", Name: "SSH output that has the sentinel or the keeper's own mark, 10 MB, no newline, " +
		"binary, a prompt " +
		"for a password, no end",
		Want:  "all bounded, exit code known or timeout",
		Tests: []string{here + ": TestOutputOverSSH", "shared/terminal/supervisor: TestOnSSHD"}},
	{Number: "25", Name: "kill switch on while approvals are pending",
		Want: "every effect denied, also one that was approved just before; approvals stay",
		Tests: []string{here + ": TestKillSwitchWithPendingApprovals", here + ": TestKillSwitchOnATerminal",
			"shared/engine/loop: TestScenarios/kill-switch"}},
	{Number: "26", Name: "words such as \"looks good, go\" to a plan", Want: "AWAITING_CONFIRMATION; nothing is done",
		Try: commentIsNoYes, Effect: true, Tests: []string{"shared/engine/loop: TestScenarios/plan-refine"},
		Peers: reported + "antigravity-cli #295 carries out a plan that was only commented on"},
	{Number: "27", Name: "no user confirms a plan",
		Want:   "AWAITING_CONFIRMATION; nothing is done; an approval without a hash returns 400 planHash",
		Try:    nobodyIsThere,
		Effect: true,
		Tests: []string{"shared/engine/loop: TestScenarios/plan-nobody",
			"shared/engine/planner: TestSeedInterface"},
		Peers: reported + "gemini-cli approves its own plan when headless; Jules' approvePlan has an empty body, " +
			"and a timer approves"},
	{Number: "28", Name: "plan swapped between its card and the yes",
		Want:  "409, and a fresh card of the plan that the model made; only that one is executed",
		Tests: []string{"shared/engine/loop: TestPlanSwapped"},
		Peers: reported + "SciLink #658 rewrites a plan after the yes"},
	{Number: "29", Name: "older revision of a plan confirmed",
		Want: "409 stale_view; AWAITING_CONFIRMATION; nothing is done", Try: oldRevision, Effect: true,
		Tests: []string{"shared/api: TestPlan"}},
	{Number: "30", Name: "20 concurrent confirmations of one plan",
		Want: "20 of 20 answered with one outcome; COMPLETED with 1 issue", Try: twentyConfirmations, Effect: true,
		Tests: []string{"shared/engine/loop: TestPlanConfirmationRace"}},
	{Number: "31", Name: "a task that is said to be done, without its action",
		Want:  "refused once, then the task has failed; the session is not completed",
		Tests: []string{"shared/engine/loop: TestScenarios/plan-proof"}},
	{Number: "32", Name: "a call outside the plan's grant: another target, one call too many, too late",
		Want: "each asks", Tests: []string{"shared/engine/loop: TestScenarios/plan-grant",
			"shared/engine/loop: TestScenarios/plan-grant-bounds"},
		Peers: reported + "copilot-cli #1176 and cline #4687 edit before the yes"},
	{Number: "33", Name: "grant taken back, or another account linked, before its use", Want: "asks; nothing is done",
		Tests: []string{"shared/engine/loop: TestGrantWithdrawnBeforeIntent",
			"shared/app: TestPlanAtGitHub",
			"shared/engine/loop: TestScenarios/plan-grant-bounds"}},
	{Number: "34", Name: "issue with a stranger's orders, read in a plan with a grant",
		Want:  "a call with the stranger's address or text asks, and its card names the source",
		Tests: []string{"shared/engine/loop: TestScenarios/taint-plan", "shared/engine/loop: TestTaintAtTheIntent"},
		Peers: reported + "github-mcp-server #844 leaks private repositories through an issue's text"},
	{Number: "35", Name: "deadline passes during a tool of a plan",
		Want: "its outcome is recorded first; the session keeps all results so far",
		Tests: []string{"shared/engine/loop: TestScenarios/plan-deadline-tool",
			"shared/engine/loop: TestScenarios/plan-deadline-waiting"},
		Peers: reported + "hermes-agent #93701 and openclaw #33827 lose all work at a timeout"},
	{Number: "36", Name: "a task fails, and a new plan is made",
		Want:  "the new plan waits and shows its differences; completed work stays; nothing else happens before a yes",
		Tests: []string{"shared/engine/loop: TestScenarios/plan-stuck"}},
}
