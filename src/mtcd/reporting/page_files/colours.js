// Colours that stay apart for the colour-blind (Okabe and Ito's for tokens and runs, Tol's light ones for clusters).
{
  const STRONG = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7a5195", "#6b6b00"];
  const STRONG_ON_DARK = ["#56b4e9", "#e98a4b", "#3dc79d", "#e09cc3", "#e6b13c", "#8fd0f5", "#b694d6", "#c6c63a"];
  const LIGHT = ["#77aadd", "#ee8866", "#44bb99", "#ffaabb", "#bbcc33", "#99ddff", "#eedd88", "#aaaa00"];
  const DASHES = [[], [8, 4], [2, 3], [8, 3, 2, 3], [14, 4], [4, 2]];

  const part = (hex, from) => parseInt(hex.slice(from, from + 2), 16) / 255;
  const linear = (value) => (value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4);
  const WEIGHTS = [0.2126, 0.7152, 0.0722];
  const luminance = (hex) => WEIGHTS.reduce((sum, weight, i) => sum + weight * linear(part(hex, 1 + 2 * i)), 0);

  page.dark = () => document.documentElement.dataset.theme === "dark";
  page.strong = (index) => (page.dark() ? STRONG_ON_DARK : STRONG)[index % STRONG.length];
  page.cluster = (index) => (index === null || index === undefined ? LIGHT[0] : LIGHT[index % LIGHT.length]);
  page.dash = (index) => DASHES[index % DASHES.length];
  page.colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();

  /** Black or white, whichever is easier to read on a colour. */
  page.readable = (hex) => {
    const light = luminance(hex);
    return 1.05 / (light + 0.05) > (light + 0.05) / 0.05 ? "#ffffff" : "#000000";
  };

  /** Dark or light: what the system prefers until the switch is used. */
  page.startTheme = (changed) => {
    const system = matchMedia("(prefers-color-scheme: dark)");
    const button = page.at("theme");
    let chosen = null;
    const apply = () => {
      const dark = chosen ?? system.matches;
      document.documentElement.dataset.theme = dark ? "dark" : "light";
      button.setAttribute("aria-pressed", dark);
      changed();
    };
    button.addEventListener("click", () => { chosen = !page.dark(); apply(); });
    system.addEventListener("change", apply);
    apply();
  };
}
