// A page that is served asks for the newest report each second.
{
  const SECOND = 1000;

  page.live = (report, changed) => {
    const chip = page.at("connection");
    let [lost, latest] = [false, report];
    const running = () => latest.mode === "federation" || latest.runs.some((run) => run.status === "running");
    const goesOn = ["running", "opening", "no answer"];
    const ended = () => latest.runs.every((run) => !goesOn.includes(run.status));  // another run may follow
    const say = (text, tone) => {
      if (chip.textContent === text) return;
      chip.textContent = text;
      chip.className = `chip ${tone}`;
      if (text !== "live" || lost) page.announce(text);
    };

    const ask = async () => {
      try {
        const answer = await fetch("data", { cache: "no-store" });
        if (!answer.ok) throw new Error(`status ${answer.status}`);
        latest = await answer.json();
        changed(latest);
        const on = running() && !ended();
        say(on ? "live" : "training has ended", on ? "good" : "");
        lost = false;
      } catch {
        say("connection lost, trying again", "bad");
        lost = true;
      }
      if (running()) setTimeout(ask, SECOND);  // what has ended does not change, and its server goes
    };

    chip.hidden = false;
    say("live", "good");
    setTimeout(ask, SECOND);
  };
}
