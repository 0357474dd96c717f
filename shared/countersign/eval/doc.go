// Package eval measures an agent with cases from files: whether its model makes the expected calls and gives the
// expected answers, how often, and what has changed since the last time. [Load] reads the cases, [Run] has the
// conversations, and [Report] has the results. [Of] is an agent of a program, and agenttest.Eval a test of one;
// go run ./scripts/eval evaluates an agent of a deployment.
//
// # Nothing happens
//
// An evaluation has no effects. A stand-in answers the calls of each tool: with the result that the case has recorded,
// or else with {"note":"not run in an evaluation"}. Calls are validated and approved as always, and the case decides in
// place of the user. Tools that only read can really run: those that [Options.Reads] names.
//
// # Cases
//
// [Load] reads all files of a folder whose name ends in .eval.yaml (or .eval.json), .evalset.json or .test.json. This
// file has every key; a case needs only a prompt:
//
//	agent: concierge                  # for scripts/eval: a declared agent; default: its flag -agent
//	now: 2027-03-01T09:00:00Z         # for scripts/eval: when the conversations take place
//	timeZone: Europe/Lisbon           # for scripts/eval: the user's
//	language: pt-PT                   # for scripts/eval: the user's
//	repeat: 5                         # runs of each case
//	passes: 0.8                       # share of the runs that must pass; default: 1
//	thresholds: {similar: 0.6}        # least score of a measure in a run; default: 1, for similar 0.8
//	rubrics:                          # a model judges whether these are true of the conversation
//	  - The agent does not claim that the event was made before the user has approved it.
//	judge: {model: gemini-flash-latest, samples: 3} # the majority counts
//	never: [gmail_send]               # tools that must not be called
//	approvals: {calendar_event_create: reject}      # default: approve
//	tools:                            # results; each can be a list, whose last entry is repeated
//	  calendar_events_list: {result: {events: []}}
//	  web_fetch:
//	    - {args: {url: "https://example.com/"}, result: {text: Hello}} # for calls with these arguments
//	    - {error: there is no such page}
//	cases:
//	  - name: lunch                   # a case can have all keys above; tools, approvals and rubrics are added
//	    turns:
//	      - prompt: schedule lunch with ana@example.com tomorrow at noon
//	        calls:
//	          match: in_order         # exact, in_order, any_order, set or subset; default: exact
//	          arguments: partial      # exact, partial or ignore; default: exact
//	          expect:
//	            - {tool: calendar_event_create, args: {start: "2027-03-02T12:00:00"}}
//	            - calendar_events_list # with any arguments
//	        answer:
//	          contains: [lunch]       # small or capital letters, as lacks
//	          lacks: [error]
//	          matches: (?i)\b12:00\b  # a regular expression of Go
//	          reference: Lunch with Ana is on Tuesday at 12:00.
//	  - name: thanks                  # with one turn
//	    prompt: thank you
//	    calls: []                     # none; without the key, calls are not judged
//
// Calls match "exact" if they are these, in this order; "in_order" also with others between them; "set" in any order;
// "any_order" also with others; and "subset" if there are no others than these. (LangSmith's agentevals calls exact,
// set, any_order and subset strict, unordered, superset and subset.) Partial arguments are the members that a call must
// have, at any depth.
//
// # Measures
//
// Each run of a case has a score from 0 to 1 for each measure that it needs. [Calls] and [Words] are the share of the
// turns that are as expected. [Similar] is the mean ROUGE-1 of the answers and their references. [Equivalent] is the
// share of the answers that a model judges to say the same as the reference; a case has it if it states a threshold for
// it. [Rubric] is the share of the rubrics that a model judges to be true. A run passes if every score reaches its
// threshold and no error ends the conversation. A case passes if enough runs do.
//
// # Files of ADK
//
// The evalsets and tests of Google's Agent Development Kit are read as they are: an EvalSet in snake_case or camelCase,
// and the two earlier forms. Criteria are in test_config.json or eval_config.json in the same folder, or in the nearest
// one above it that is read; without one they are ADK's defaults. These criteria are measured:
// tool_trajectory_avg_score with its match types, response_match_score, final_response_match_v2,
// rubric_based_final_response_quality_v1 and rubric_based_tool_use_quality_v1. Other criteria, simulated users, session
// states and parts of messages without text are named in [Report.Skipped]. The tool_responses and mock_tool_output of a
// file are the results of its tools; [Set.AddResults] adds others.
package eval
